/**
 * Short digests: to see that two inputs are the same without keeping both (L-I2), and that what was stored is what is
 * read (L-R5). Not for secrets: they guard against accidents, not against an adversary.
 *
 * @since 0.1.0
 */
import * as Input from "../domain/Input.ts"

/** Two lanes of 32 bits: each takes four bytes by a multiplication and a turn, so that no bit stays where it was. */
const ofBytes = (bytes: Uint8Array, length: number, seed: number): string => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  let high = 0xdeadbeef ^ length ^ seed
  let low = 0x41c6ce57 ^ seed
  let at = 0
  for (; at + 4 <= length; at += 4) {
    const word = view.getInt32(at, true)
    high = Math.imul(high ^ word, 2654435761)
    high = (high << 13) | (high >>> 19)
    low = Math.imul(low ^ word, 1597334677)
    low = (low << 17) | (low >>> 15)
  }
  for (; at < length; at++) {
    const byte = view.getUint8(at)
    high = Math.imul(high ^ byte, 2654435761)
    low = Math.imul(low ^ byte, 1597334677)
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

const encoder = new TextEncoder()

/** Where most texts are encoded, one at a time: to make room for each would cost more than to digest it. */
const shared = new Uint8Array(16_384)

const ofText = (text: string, seed: number): string => {
  const room = text.length * 3 <= shared.length ? shared : new Uint8Array(text.length * 3)
  return ofBytes(room, encoder.encodeInto(text, room).written, seed)
}

/**
 * 60 bits of digest of a text, as text.
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

const ofFile = (bytes: Uint8Array): string => `${ofBytes(bytes, bytes.length, 0)}.${ofBytes(bytes, bytes.length, 1)}`

/**
 * The digest of everything in which two inputs of one id must agree to be the same input (L-I2).
 *
 * @category digests
 * @since 0.1.0
 */
export const ofInput = (input: Input.Input): string => long(Input.canonical(input, ofFile))
