/**
 * Short digests of text: to see that two inputs are the same without keeping both (L-I2), and that what was stored is what is
 * read (L-R5). Not for secrets: they guard against accidents, not against an adversary.
 *
 * @since 0.1.0
 */
import * as Input from "../domain/Input.ts"

const ofTexts = (texts: ReadonlyArray<string>, seed: number): string => {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (const text of texts) {
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      high = Math.imul(high ^ unit, 2654435761)
      low = Math.imul(low ^ unit, 1597334677)
    }
  }
  return finish(high, low)
}

const ofUnits = (units: Uint8Array, seed: number): string => {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (const unit of units) {
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  return finish(high, low)
}

const finish = (upper: number, lower: number): string => {
  let high = upper
  let low = lower
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return lettersOf(high) + lettersOf(low)
}

const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

/** The upper 30 bits, of which the last steps make the most. */
const lettersOf = (word: number): string =>
  letters.charAt(word >>> 26) +
  letters.charAt((word >>> 20) & 63) +
  letters.charAt((word >>> 14) & 63) +
  letters.charAt((word >>> 8) & 63) +
  letters.charAt((word >>> 2) & 63)

/**
 * 60 bits of digest of texts, as if they were one, as text.
 *
 * @category digests
 * @since 0.1.0
 */
export const short = (...texts: ReadonlyArray<string>): string => ofTexts(texts, 0)

/**
 * 120 bits of digest, as text.
 *
 * @category digests
 * @since 0.1.0
 */
export const long = (text: string): string => `${ofTexts([text], 0)}.${ofTexts([text], 1)}`

const ofBytes = (bytes: Uint8Array): string => `${ofUnits(bytes, 0)}.${ofUnits(bytes, 1)}`

/**
 * The digest of everything in which two inputs of one id must agree to be the same input (L-I2).
 *
 * @category digests
 * @since 0.1.0
 */
export const ofInput = (input: Input.Input): string => long(Input.canonical(input, ofBytes))
