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
    assert.strictEqual(Digest.ofInput(withFile(every)), "CbgntBmE5m.N_fzDDCTnD")
    for (let byte = 0; byte < 256; byte++) {
      const other = Uint8Array.from(every)
      other[byte] = byte ^ 0x80
      assert.notStrictEqual(Digest.ofInput(withFile(other)), Digest.ofInput(withFile(every)))
    }
  })

  it("a digest of texts is that of the texts as one", () => {
    assert.strictEqual(Digest.short("ab", "c"), Digest.short("abc"))
    assert.notStrictEqual(Digest.short("abc"), Digest.short("acb"))
  })
})
