import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, FileSystem, Option, Path, Schema, Scope, Stream } from "effect"
import { Tool } from "effect/ai"
import * as FileTools from "../../src/host/cli/FileTools.ts"
import * as Workspace from "../../src/host/cli/Workspace.ts"

type Name = keyof typeof FileTools.toolkit.tools

const setup = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const outside = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  yield* fs.writeFileString(path.join(outside, "secret.txt"), "secret")
  const { root } = yield* Workspace.scratch()
  const handlers = yield* FileTools.toolkit.pipe(Effect.provide(FileTools.layer(root)))
  const call = (name: Name, params: Record<string, unknown>) =>
    // The parameters go in as a model sends them: unchecked.
    Effect.flatMap(handlers.handle(name, params as never), Stream.runLast).pipe(
      Effect.map((last) => {
        const { encodedResult, isFailure } = Option.getOrThrow(last)
        return { isFailure, result: encodedResult }
      })
    )
  const at = (name: string) => path.join(root, name)
  return { fs, path, root, outside, call, at }
})

const reason = (outcome: { readonly isFailure: boolean; readonly result: unknown }): unknown =>
  outcome.isFailure && typeof outcome.result === "object" && outcome.result !== null && "reason" in outcome.result
    ? outcome.result.reason
    : undefined

describe("FileTools", () => {
  it.layer(NodeServices.layer)((it) => {
    it.effect("list_files lists the files of one directory, sorted, with their sizes", () =>
      Effect.gen(function* () {
        const { call } = yield* setup
        const { isFailure, result } = yield* call("list_files", { directory: "inbox/" })
        assert.isFalse(isFailure)
        assert.deepStrictEqual(result, {
          directory: "inbox",
          files: Workspace.files.map(([path, content]) => ({ path, bytes: content.length })),
          truncated: false
        })
        const empty = yield* call("list_files", { directory: "archive/2025" })
        assert.deepStrictEqual(empty.result, { directory: "archive/2025", files: [], truncated: false })
      })
    )

    it.effect("list_files goes below a directory only when asked, and follows no link", () =>
      Effect.gen(function* () {
        const { at, call, fs, outside } = yield* setup
        yield* fs.symlink(outside, at("inbox/link"))
        yield* fs.symlink(`${outside}/secret.txt`, at("inbox/secret.txt"))
        const flat = yield* call("list_files", { directory: "." })
        assert.deepStrictEqual(flat.result, { directory: ".", files: [], truncated: false })
        const deep = yield* call("list_files", { directory: ".", recursive: true })
        assert.deepStrictEqual(deep.result, {
          directory: ".",
          files: Workspace.files.map(([path, content]) => ({ path, bytes: content.length })),
          truncated: false
        })
      })
    )

    it.effect("list_files returns a bounded list and says that it was cut", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.makeDirectory(at("many"))
        yield* Effect.forEach(
          Array.from({ length: FileTools.maxListed + 3 }, (_, index) => index),
          (index) => fs.writeFileString(at(`many/${index}`), ""),
          { concurrency: 20, discard: true }
        )
        const { result } = yield* call("list_files", { directory: "many" })
        const listed = Schema.decodeUnknownSync(FileTools.ListFiles.successSchema)(result)
        assert.deepStrictEqual([listed.files.length, listed.truncated], [FileTools.maxListed, true])
      })
    )

    it.effect("read_file returns the text and the size", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.writeFileString(at("inbox/ü.md"), "größer\n")
        const { result } = yield* call("read_file", { path: "inbox/ü.md" })
        assert.deepStrictEqual(result, { path: "inbox/ü.md", content: "größer\n", bytes: 9, truncated: false })
      })
    )

    it.effect("read_file returns at most 64 KiB, cut between characters, and says so", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.writeFileString(at("long.txt"), `a${"ü".repeat(40_000)}`)
        const { result } = yield* call("read_file", { path: "long.txt" })
        assert.deepStrictEqual(result, {
          path: "long.txt",
          content: `a${"ü".repeat(FileTools.maxReadBytes / 2 - 1)}`,
          bytes: 80_001,
          truncated: true
        })
      })
    )

    it.effect("read_file refuses what is no text file", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.writeFile(at("image.png"), Uint8Array.of(137, 80, 0, 1))
        assert.strictEqual(reason(yield* call("read_file", { path: "image.png" })), "not-text")
        assert.strictEqual(reason(yield* call("read_file", { path: "inbox" })), "not-a-file")
        assert.strictEqual(reason(yield* call("read_file", { path: "inbox/none.md" })), "not-found")
        assert.strictEqual(reason(yield* call("list_files", { directory: "none" })), "not-found")
        assert.strictEqual(reason(yield* call("list_files", { directory: "image.png" })), "not-a-directory")
      })
    )

    it.effect("write_file makes the directories it needs and says whether it replaced a file", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        const first = yield* call("write_file", { path: "a/b/INDEX.md", content: "é" })
        assert.deepStrictEqual(first, { isFailure: false, result: { path: "a/b/INDEX.md", bytes: 2, replaced: false } })
        const second = yield* call("write_file", { path: "a/b/INDEX.md", content: "x" })
        assert.deepStrictEqual(second, { isFailure: false, result: { path: "a/b/INDEX.md", bytes: 1, replaced: true } })
        assert.strictEqual(yield* fs.readFileString(at("a/b/INDEX.md")), "x")
        assert.strictEqual(reason(yield* call("write_file", { path: "inbox", content: "" })), "not-a-file")
        assert.strictEqual(reason(yield* call("write_file", { path: ".", content: "" })), "not-a-file")
      })
    )

    it.effect("move_file moves a file and makes the directories it needs", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        const moved = yield* call("move_file", { from: "inbox/room-booking.md", to: "archive/2026/01/room.md" })
        assert.deepStrictEqual(moved, {
          isFailure: false,
          result: { from: "inbox/room-booking.md", to: "archive/2026/01/room.md" }
        })
        assert.isFalse(yield* fs.exists(at("inbox/room-booking.md")))
        assert.include(yield* fs.readFileString(at("archive/2026/01/room.md")), "# Room booking")
      })
    )

    it.effect("move_file refuses to overwrite and leaves both files as they were", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.writeFileString(at("archive/2025/room-booking.md"), "another")
        for (const to of ["archive/2025/room-booking.md", "archive/2025", ".", "inbox/room-booking.md"]) {
          const outcome = yield* call("move_file", { from: "inbox/room-booking.md", to })
          assert.strictEqual(reason(outcome), "already-exists", to)
        }
        assert.strictEqual(yield* fs.readFileString(at("archive/2025/room-booking.md")), "another")
        assert.include(yield* fs.readFileString(at("inbox/room-booking.md")), "# Room booking")
        assert.strictEqual(reason(yield* call("move_file", { from: "inbox", to: "elsewhere" })), "not-a-file")
        assert.strictEqual(reason(yield* call("move_file", { from: "inbox/none.md", to: "elsewhere" })), "not-found")
      })
    )

    it.effect("of several moves to one name at once exactly one is made", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        const outcomes = yield* Effect.forEach(
          Workspace.files,
          ([from]) => call("move_file", { from, to: "archive/2025/one" }),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter((outcome) => !outcome.isFailure).length, 1)
        assert.strictEqual((yield* fs.readDirectory(at("inbox"))).length, Workspace.files.length - 1)
      })
    )

    it.effect("every path that leaves the workspace is refused by every tool, and nothing outside changes", () =>
      Effect.gen(function* () {
        const { at, call, fs, outside, path, root } = yield* setup
        yield* fs.symlink(outside, at("inbox/way-out"))
        yield* fs.symlink(path.join(outside, "secret.txt"), at("inbox/secret-link"))
        yield* fs.symlink(path.join(outside, "made-by-link"), at("inbox/dangling"))
        yield* fs.symlink("../..", at("inbox/up"))
        const up = `../${path.basename(outside)}/secret.txt`
        const escapes = [
          path.join(outside, "secret.txt"),
          "/etc/passwd",
          up,
          `inbox/../${up}`,
          `inbox/../../${path.basename(outside)}/secret.txt`,
          "..",
          "inbox/way-out/secret.txt",
          "inbox/way-out/new.txt",
          "inbox/way-out/deep/new.txt",
          "inbox/secret-link",
          "inbox/dangling",
          `inbox/up/${path.basename(outside)}/secret.txt`,
          root,
          "inbox/a\u0000b"
        ]
        for (const escape of escapes) {
          const outcomes = [
            yield* call("list_files", { directory: escape }),
            yield* call("read_file", { path: escape }),
            yield* call("write_file", { path: escape, content: "x" }),
            yield* call("move_file", { from: escape, to: "archive/taken" }),
            yield* call("move_file", { from: "inbox/room-booking.md", to: escape })
          ]
          assert.deepStrictEqual(
            outcomes.map(reason),
            Array.from(outcomes, () => "outside-workspace"),
            escape
          )
        }
        assert.deepStrictEqual(yield* fs.readDirectory(outside), ["secret.txt"])
        assert.strictEqual(yield* fs.readFileString(path.join(outside, "secret.txt")), "secret")
        assert.isTrue(yield* fs.exists(at("inbox/room-booking.md")))
      })
    )

    it.effect("a link that stays inside the workspace may be used", () =>
      Effect.gen(function* () {
        const { at, call, fs } = yield* setup
        yield* fs.symlink("archive/2025", at("latest"))
        const written = yield* call("write_file", { path: "latest/a.md", content: "a" })
        assert.deepStrictEqual(written.result, { path: "archive/2025/a.md", bytes: 1, replaced: false })
      })
    )

    it.effect("a failure tells no absolute path", () =>
      Effect.gen(function* () {
        const { call, root } = yield* setup
        const outcomes = [
          yield* call("read_file", { path: "none.md" }),
          yield* call("move_file", { from: "inbox/room-booking.md", to: "inbox/contacts.csv/x" }),
          yield* call("write_file", { path: "inbox/contacts.csv/x", content: "" }),
          yield* call("read_file", { path: `${"x".repeat(300)}` })
        ]
        assert.isTrue(outcomes.every((outcome) => outcome.isFailure))
        assert.notInclude(JSON.stringify(outcomes), root)
      })
    )

    it.effect("parameters of the wrong shape are a returned failure", () =>
      Effect.gen(function* () {
        const { call } = yield* setup
        assert.isTrue((yield* call("move_file", { from: "inbox/contacts.csv" })).isFailure)
      })
    )
  })

  it("says of each tool whether it only reads and whether it destroys", () => {
    const annotations = Object.values(FileTools.toolkit.tools).map((tool) => [
      tool.name,
      Context.get(tool.annotations, Tool.Readonly),
      Context.get(tool.annotations, Tool.Destructive),
      Context.get(tool.annotations, Tool.Idempotent)
    ])
    assert.deepStrictEqual(annotations, [
      ["list_files", true, false, true],
      ["read_file", true, false, true],
      ["write_file", false, true, true],
      ["move_file", false, false, false]
    ])
  })
})

describe("Workspace", () => {
  it.layer(NodeServices.layer)((it) => {
    const opened = Effect.fnUntraced(function* (options: Parameters<typeof Workspace.open>[0]) {
      const fs = yield* FileSystem.FileSystem
      const scope = yield* Scope.make()
      const workspace = yield* Workspace.open(options).pipe(Scope.provide(scope))
      yield* fs.writeFileString(`${workspace.root}/made-later.txt`, "")
      const during = yield* fs.exists(workspace.root)
      yield* Scope.close(scope, Exit.void)
      return { workspace, during, after: yield* fs.exists(workspace.root) }
    })

    it.effect("a scratch one has real files and is removed with its scope", () =>
      Effect.gen(function* () {
        const { after, during, workspace } = yield* opened({})
        assert.deepStrictEqual([workspace.origin, workspace.kept, during, after], ["scratch", false, true, false])
      })
    )

    it.effect("a scratch one that is to be kept is kept", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { after, workspace } = yield* opened({ keep: true })
        assert.isTrue(after)
        yield* fs.remove(workspace.root, { recursive: true })
      })
    )

    it.effect("an adopted one is used as it is and never removed", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const directory = yield* fs.makeTempDirectoryScoped()
        const { after, workspace } = yield* opened({ directory, keep: false })
        assert.deepStrictEqual([workspace.origin, workspace.kept, after], ["adopted", true, true])
        assert.deepStrictEqual(yield* fs.readDirectory(directory), ["made-later.txt"])
      })
    )

    it.effect("a directory that is none is refused", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const directory = yield* fs.makeTempDirectoryScoped()
        yield* fs.writeFileString(`${directory}/file`, "")
        const missing = yield* Effect.flip(Workspace.adopt(`${directory}/none`))
        const file = yield* Effect.flip(Workspace.adopt(`${directory}/file`))
        assert.deepInclude(missing, { _tag: "WorkspaceError", reason: "not-found" })
        assert.deepInclude(file, { _tag: "WorkspaceError", reason: "not-a-directory" })
      })
    )
  })
})
