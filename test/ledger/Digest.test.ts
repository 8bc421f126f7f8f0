/** L-I2: digests are kept, so they must be the same on every machine and in every version. */
import { assert, describe, it } from "@effect/vitest"
import { Prompt } from "effect/ai"
import { Input } from "../../src/index.ts"
import * as Digest from "../../src/ledger/Digest.ts"

const every = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const withFile = (data: Uint8Array) =>
  Input.prompt([Prompt.makePart("file", { mediaType: "application/octet-stream", data })], { id: "in_1" })

describe("Digest", () => {
  it("L-I2 L-I3 the digest of an input with a file of every byte is this one, and another for any other file", () => {
    assert.strictEqual(Digest.ofInput(withFile(every)), "ioKAGFXVQr.3S-U3j5goV")
    for (let byte = 0; byte < 256; byte++) {
      const other = Uint8Array.from(every)
      other[byte] = byte ^ 0x80
      assert.notStrictEqual(Digest.ofInput(withFile(other)), Digest.ofInput(withFile(every)))
    }
  })

  it("any one bit of a text changes half of its digest's letters and more", () => {
    const text = JSON.stringify({ type: "input.accepted", input_id: "in_1", text: "Grüße, 你好" })
    for (let at = 0; at < text.length; at++) {
      const other = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1)
      const [before, after] = [Digest.short(text), Digest.short(other)]
      assert.isAbove(Array.from(before).filter((letter, index) => letter !== after[index]).length, 4)
    }
  })

  it("a text of any length has a digest of its own", () => {
    const digests = Array.from({ length: 20_000 }, (_, length) => Digest.short("\u0000".repeat(length)))
    assert.strictEqual(new Set(digests).size, digests.length)
  })

  it("the two halves of a long digest tell texts apart where one does not", () => {
    const seen = Array.from({ length: 50_000 }, (_, n) => Digest.long(`the text ${n}`))
    for (const half of [0, 1]) assert.strictEqual(new Set(seen.map((each) => each.split(".")[half])).size, seen.length)
  })
})
