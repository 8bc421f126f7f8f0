/**
 * Four file tools over one directory. Every path is relative to that directory and stays inside it: an absolute path,
 * a path that leaves through `..`, and one that leaves through a symbolic link are refused before anything is touched.
 * The check is made when the call runs; a link swapped in by another process between check and use is not guarded.
 *
 * @since 0.1.0
 */
import { ByteSize, Effect, FileSystem, type Layer, Option, Path, type PlatformError, Schema, Stream } from "effect"
import { Tool, Toolkit } from "effect/ai"

/**
 * The most bytes `read_file` returns of one file: 64 KiB.
 *
 * @category constants
 * @since 0.1.0
 */
export const maxReadBytes = 64 * 1024

/**
 * The most files `list_files` returns.
 *
 * @category constants
 * @since 0.1.0
 */
export const maxListed = 1000

/**
 * Why a file tool did not do what it was asked. Nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class FileToolError extends Schema.TaggedError<FileToolError>()("FileToolError", {
  reason: Schema.Literals([
    "outside-workspace",
    "not-found",
    "already-exists",
    "not-a-file",
    "not-a-directory",
    "not-text",
    "io"
  ]),
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.path}: ${this.detail}`
  }
}

const FilePath = Schema.String.annotate({
  description: "Path of a file, relative to the workspace, with / between its parts"
})

/**
 * One file `list_files` found: its workspace-relative path and its size in bytes.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ListedFile = Schema.Struct({ path: Schema.String, bytes: Schema.Int })

/**
 * Lists the regular files of a directory, sorted by path. Links are not followed and not listed.
 *
 * @category tools
 * @since 0.1.0
 */
export const ListFiles = Tool.make("list_files", {
  description: "List the files of a directory of the workspace, sorted by path",
  parameters: Schema.Struct({
    directory: Schema.String.annotate({ description: "The directory, relative to the workspace; . is the workspace" }),
    recursive: Schema.optionalKey(Schema.Boolean).annotate({
      description: "Whether to list the directories below it too. Not unless said"
    })
  }),
  success: Schema.Struct({
    directory: Schema.String,
    files: Schema.Array(ListedFile),
    truncated: Schema.Boolean
  }),
  failure: FileToolError,
  failureMode: "return"
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)

/**
 * Reads a text file, at most `maxReadBytes` of it; `bytes` is the size of the whole file.
 *
 * @category tools
 * @since 0.1.0
 */
export const ReadFile = Tool.make("read_file", {
  description: "Read a text file of the workspace. Only its first 64 KiB are returned; truncated says so",
  parameters: Schema.Struct({ path: FilePath }),
  success: Schema.Struct({
    path: Schema.String,
    content: Schema.String,
    bytes: Schema.Int,
    truncated: Schema.Boolean
  }),
  failure: FileToolError,
  failureMode: "return"
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)

/**
 * Writes a text file, replacing what it held, and makes the directories it needs.
 *
 * @category tools
 * @since 0.1.0
 */
export const WriteFile = Tool.make("write_file", {
  description: "Write a text file of the workspace. A file that exists is replaced; missing directories are made",
  parameters: Schema.Struct({
    path: FilePath,
    content: Schema.String.annotate({ description: "The whole new content of the file" })
  }),
  success: Schema.Struct({ path: Schema.String, bytes: Schema.Int, replaced: Schema.Boolean }),
  failure: FileToolError,
  failureMode: "return"
})
  .annotate(Tool.Readonly, false)
  .annotate(Tool.Destructive, true)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)

/**
 * Moves a file and never overwrites one: a taken destination is refused and both files stay as they are.
 *
 * @category tools
 * @since 0.1.0
 */
export const MoveFile = Tool.make("move_file", {
  description:
    "Move or rename a file inside the workspace. Refused if the destination exists; missing directories are made",
  parameters: Schema.Struct({
    from: FilePath,
    to: Schema.String.annotate({
      description: "The new path of the file, its name included, relative to the workspace"
    })
  }),
  success: Schema.Struct({ from: Schema.String, to: Schema.String }),
  failure: FileToolError,
  failureMode: "return"
})
  .annotate(Tool.Readonly, false)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, false)
  .annotate(Tool.OpenWorld, false)

/**
 * The four tools, without handlers.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(ListFiles, ReadFile, WriteFile, MoveFile)

/**
 * What a host must provide for an agent that has these tools.
 *
 * @category models
 * @since 0.1.0
 */
export type Handlers = Tool.HandlersFor<Toolkit.Tools<typeof toolkit>>

/**
 * The tools' handlers over the directory `root`. Fails if `root` cannot be resolved when the layer is built.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  root: string
): Layer.Layer<Handlers, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
  toolkit.toLayer(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const resolve = yield* confine(root)
      const shown = (location: Location): string => location.relative || "."

      const list = (
        location: Location,
        recursive: boolean
      ): Effect.Effect<Array<typeof ListedFile.Type>, PlatformError.PlatformError> =>
        Effect.gen(function* () {
          const found: Array<typeof ListedFile.Type> = []
          const entries = Array.from(yield* fs.readDirectoryEntries(location.absolute)).sort(byName)
          for (const entry of entries) {
            if (found.length > maxListed) break
            const child = {
              absolute: path.join(location.absolute, entry.name),
              relative: location.relative === "" ? entry.name : `${location.relative}/${entry.name}`
            }
            if (entry.type === "Directory" && recursive) {
              found.push(...(yield* list(child, recursive)))
            } else if (entry.type === "File") {
              const info = yield* Effect.option(fs.lstat(child.absolute))
              if (Option.isSome(info))
                found.push({ path: child.relative, bytes: ByteSize.toNumberUnsafe(info.value.size) })
            }
          }
          return found
        })

      return toolkit.of({
        list_files: Effect.fn("FileTools.list_files")(function* (params) {
          const at = yield* resolve(params.directory)
          yield* expectType(fs, at, params.directory, "Directory")
          const found = yield* list(at, params.recursive ?? false).pipe(Effect.mapError(failure(params.directory)))
          return {
            directory: shown(at),
            files: found.sort((a, b) => order(a.path, b.path)).slice(0, maxListed),
            truncated: found.length > maxListed
          }
        }),

        read_file: Effect.fn("FileTools.read_file")(function* (params) {
          const at = yield* resolve(params.path)
          const info = yield* expectType(fs, at, params.path, "File")
          const decoder = new TextDecoder()
          const content = yield* fs.stream(at.absolute, { bytesToRead: maxReadBytes }).pipe(
            Stream.runFold(
              () => "",
              (text, chunk: Uint8Array) => text + decoder.decode(chunk, { stream: true })
            ),
            Effect.mapError(failure(params.path))
          )
          if (content.includes("\u0000")) {
            return yield* new FileToolError({ reason: "not-text", path: params.path, detail: "it is not a text file" })
          }
          const bytes = ByteSize.toNumberUnsafe(info.size)
          return { path: shown(at), content, bytes, truncated: bytes > maxReadBytes }
        }),

        write_file: Effect.fn("FileTools.write_file")(function* (params) {
          const at = yield* resolve(params.path)
          const there = yield* fs.stat(at.absolute).pipe(Effect.option)
          if (at.relative === "" || (Option.isSome(there) && there.value.type !== "File")) {
            return yield* new FileToolError({ reason: "not-a-file", path: params.path, detail: "it is not a file" })
          }
          yield* fs
            .makeDirectory(path.dirname(at.absolute), { recursive: true })
            .pipe(
              Effect.andThen(fs.writeFileString(at.absolute, params.content)),
              Effect.mapError(failure(params.path))
            )
          return {
            path: shown(at),
            bytes: new TextEncoder().encode(params.content).length,
            replaced: Option.isSome(there)
          }
        }),

        move_file: Effect.fn("FileTools.move_file")(function* (params) {
          const from = yield* resolve(params.from)
          const to = yield* resolve(params.to)
          yield* expectType(fs, from, params.from, "File")
          const taken = new FileToolError({
            reason: "already-exists",
            path: params.to,
            detail: "a file of that name is already there; nothing was moved"
          })
          if (to.relative === "" || (yield* fs.exists(to.absolute).pipe(Effect.orElseSucceed(() => true)))) {
            return yield* taken
          }
          yield* fs
            .makeDirectory(path.dirname(to.absolute), { recursive: true })
            .pipe(Effect.mapError(failure(params.to)))
          yield* relocate(fs, from.absolute, to.absolute).pipe(
            Effect.mapError((error) => (error.reason._tag === "AlreadyExists" ? taken : failure(params.from)(error)))
          )
          return { from: shown(from), to: shown(to) }
        })
      })
    })
  )

interface Location {
  readonly absolute: string
  /** Workspace-relative with `/`, empty for the workspace itself. */
  readonly relative: string
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const byName = (a: FileSystem.DirectoryEntry, b: FileSystem.DirectoryEntry): number => order(a.name, b.name)

/** Resolves a path of the workspace, each link on the way followed and checked, or refuses it. */
const confine = Effect.fnUntraced(function* (
  root: string
): Effect.fn.Return<
  (input: string) => Effect.Effect<Location, FileToolError>,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* fs.realPath(root)
  const inside = (absolute: string): boolean =>
    Option.isSome(path.resolveWithin(base, path.relative(base, absolute) || "."))

  return Effect.fnUntraced(function* (input: string) {
    const outside = new FileToolError({
      reason: "outside-workspace",
      path: input,
      detail: "the path must be relative and stay inside the workspace"
    })
    const lexical = path.resolveWithin(base, input)
    if (Option.isNone(lexical) || input.includes("\u0000")) return yield* outside
    const parts = path
      .relative(base, lexical.value)
      .split(path.sep)
      .filter((part) => part !== "")
    let absolute = base
    for (const [index, part] of parts.entries()) {
      const step = path.join(absolute, part)
      const info = yield* fs.lstat(step).pipe(
        Effect.asSome,
        Effect.catchIf(
          (error) => error.reason._tag === "NotFound",
          () => Effect.succeedNone
        ),
        Effect.mapError(failure(input))
      )
      if (Option.isNone(info)) {
        absolute = path.join(absolute, ...parts.slice(index))
        break
      }
      // A link that leads nowhere is refused: writing through it would create its target.
      absolute =
        info.value.type === "SymbolicLink" ? yield* fs.realPath(step).pipe(Effect.mapError(() => outside)) : step
      if (!inside(absolute)) return yield* outside
    }
    return { absolute, relative: path.relative(base, absolute).split(path.sep).join("/") }
  })
})

/**
 * A rename would replace a file made since the look before it; a hard link to a taken name fails instead. Where the
 * file system has no hard links, it is a rename all the same.
 */
const relocate = (
  fs: FileSystem.FileSystem,
  from: string,
  to: string
): Effect.Effect<void, PlatformError.PlatformError> =>
  fs.link(from, to).pipe(
    Effect.as(true),
    Effect.catchIf(
      (error) => error.reason._tag === "PermissionDenied" || error.reason._tag === "Unknown",
      () => Effect.as(fs.rename(from, to), false)
    ),
    Effect.flatMap((linked) =>
      linked ? Effect.tapError(fs.remove(from), () => Effect.ignore(fs.remove(to))) : Effect.void
    ),
    Effect.uninterruptible
  )

const expectType = (
  fs: FileSystem.FileSystem,
  at: Location,
  input: string,
  type: "File" | "Directory"
): Effect.Effect<FileSystem.File.Info, FileToolError> =>
  fs.stat(at.absolute).pipe(
    Effect.mapError(failure(input)),
    Effect.filterOrFail(
      (info) => info.type === type,
      () =>
        type === "File"
          ? new FileToolError({ reason: "not-a-file", path: input, detail: "it is not a file" })
          : new FileToolError({ reason: "not-a-directory", path: input, detail: "it is not a directory" })
    )
  )

/** A platform error in the tool's own words; the absolute path inside the platform's message is not for the model. */
const failure =
  (input: string) =>
  (error: PlatformError.PlatformError): FileToolError =>
    error.reason._tag === "NotFound"
      ? new FileToolError({ reason: "not-found", path: input, detail: "there is no such file or directory" })
      : error.reason._tag === "AlreadyExists"
        ? new FileToolError({ reason: "already-exists", path: input, detail: "something is already there" })
        : new FileToolError({ reason: "io", path: input, detail: `the file system refused (${error.reason._tag})` })
