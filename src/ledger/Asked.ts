/**
 * What a store is asked, read alike by every store.
 *
 * @since 0.1.0
 */

/** A commit, as far as it is looked at here. */
interface Commit {
  readonly sessionId: string
  readonly expected: number
  readonly entries: ReadonlyArray<{ readonly position: number }>
}

/** The largest position or sequence that a store has to hold. */
export const largest = 2 ** 31 - 1

/**
 * A position, a sequence or a count that a caller gave, as a whole number that a store can hold.
 *
 * @category conversions
 * @since 0.1.0
 */
export const whole = (value: number): number => (value >= 1 ? Math.min(Math.floor(value), largest) : 0)

/**
 * The defect of a commit that has no entries, or whose entries do not follow its `expected` position, if so.
 *
 * @category guards
 * @since 0.1.0
 */
export const defectOf = ({ entries, expected, sessionId }: Commit): Error | undefined => {
  if (entries.length === 0) return new Error(`a commit of ${sessionId} has no entries`)
  return entries.every(({ position }, index) => position === expected + 1 + index)
    ? undefined
    : new Error(`a commit of ${sessionId} has a gap after ${expected}`)
}
