/**
 * Colours, as functions on text, and the cleaning of text that comes from a model, a file or a server: it may not move the
 * cursor, colour the screen or title the window of whoever runs the program.
 *
 * @since 0.1.0
 */

/**
 * What each kind of words looks like.
 *
 * @category models
 * @since 0.1.0
 */
export interface Palette {
  readonly strong: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly waiting: (text: string) => string
  readonly bad: (text: string) => string
}

const sgr =
  (begin: number, end: number) =>
  (text: string): string =>
    `\u001b[${begin}m${text}\u001b[${end}m`

/** @category constants @since 0.1.0 */
export const coloured: Palette = {
  strong: sgr(1, 22),
  dim: sgr(2, 22),
  good: sgr(32, 39),
  waiting: sgr(33, 39),
  bad: sgr(31, 39)
}

const same = (text: string): string => text

/** @category constants @since 0.1.0 */
export const plain: Palette = { strong: same, dim: same, good: same, waiting: same, bad: same }

/**
 * Whether to colour: `FORCE_COLOR` decides if it is set, then `NO_COLOR`, then whether the output is a terminal that can.
 *
 * @category predicates
 * @since 0.1.0
 */
export const wantsColour = (
  environment: { readonly [name: string]: string | undefined },
  isTerminal: boolean
): boolean => {
  const { FORCE_COLOR: force, NO_COLOR: no, TERM: term } = environment
  if (force !== undefined && force !== "") return force !== "0" && force !== "false"
  return isTerminal && (no === undefined || no === "") && term !== "dumb"
}

/**
 * The text without control characters; line ends and tabs become spaces.
 *
 * @category cleaning
 * @since 0.1.0
 */
export const clean = (text: string): string =>
  text
    .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g, "")
    .replace(/[\r\n\t]+/g, " ")
    .replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "")

/**
 * At most `length` characters, the last an ellipsis if some were cut.
 *
 * @category cleaning
 * @since 0.1.0
 */
export const clip = (text: string, length: number): string => {
  const characters = Array.from(text)
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text
}

/**
 * A number of things in words: `1 file`, `2 files`.
 *
 * @category formatting
 * @since 0.1.0
 */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/**
 * How many columns the text takes on a screen, escape sequences not counted.
 *
 * @category measuring
 * @since 0.1.0
 */
export const widthOf = (text: string): number => {
  let width = 0
  for (const character of text.replace(/\u001b\[[0-9;]*m/g, "")) {
    if (/\p{M}|[\u200b-\u200d]/u.test(character)) continue
    width += wide.test(character) ? 2 : 1
  }
  return width
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
