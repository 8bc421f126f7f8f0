/**
 * Short digests of text: to see that two inputs are the same without keeping both (L-I2), and that what was stored is what is
 * read (L-R5). Not for secrets: they guard against accidents, not against an adversary.
 *
 * @since 0.1.0
 */
import * as Input from "../domain/Input.ts"

const mix = (length: number, unit: (index: number) => number, seed: number): string => {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (let index = 0; index < length; index++) {
    const each = unit(index)
    high = Math.imul(high ^ each, 2654435761)
    low = Math.imul(low ^ each, 1597334677)
  }
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

const ofText = (text: string, seed: number): string => mix(text.length, (index) => text.charCodeAt(index), seed)

const ofBytes = (bytes: Uint8Array): string => {
  const unit = (index: number) => bytes[index] ?? 0
  return `${mix(bytes.length, unit, 0)}.${mix(bytes.length, unit, 1)}`
}

/**
 * 60 bits of digest, as text.
 *
 * @category digests
 * @since 0.1.0
 */
export const short = (text: string): string => ofText(text, 0)

/**
 * 120 bits of digest, as text.
 *
 * @category digests
 * @since 0.1.0
 */
export const long = (text: string): string => `${ofText(text, 0)}.${ofText(text, 1)}`

/**
 * The digest of everything in which two inputs of one id must agree to be the same input (L-I2).
 *
 * @category digests
 * @since 0.1.0
 */
export const ofInput = (input: Input.Input): string => long(Input.canonical(input, ofBytes))
