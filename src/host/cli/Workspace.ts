/**
 * The directory an agent of the terminal program works in. A scratch workspace holds a small set of real files and is
 * removed with its scope unless it is to be kept; an adopted directory is used as it is and is never removed.
 *
 * @since 0.1.0
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import type { PlatformError, Scope } from "effect"

/**
 * A directory with files to work on. `root` is absolute and free of symbolic links.
 *
 * @category models
 * @since 0.1.0
 */
export interface Workspace {
  readonly root: string
  readonly origin: "scratch" | "adopted"
  /** Whether the directory outlives its scope. Always true of an adopted one. */
  readonly kept: boolean
}

/**
 * The directory to adopt cannot be worked in.
 *
 * @category errors
 * @since 0.1.0
 */
export class WorkspaceError extends Schema.TaggedError<WorkspaceError>()("WorkspaceError", {
  directory: Schema.String,
  reason: Schema.Literals(["not-found", "not-a-directory"])
}) {
  override get message(): string {
    const why = this.reason === "not-found" ? "it does not exist" : "it is not a directory"
    return `${this.directory} cannot be the workspace: ${why}`
  }
}

/**
 * The directory of a scratch workspace whose files are to be sorted.
 *
 * @category constants
 * @since 0.1.0
 */
export const source = "inbox"

/**
 * The directory of a scratch workspace the files go to unless a person says otherwise.
 *
 * @category constants
 * @since 0.1.0
 */
export const target = "archive/2025"

/**
 * The task the terminal program gives when the person gives none.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultTask = `Sort the files of ${source}/ into ${target} and write an index`

/**
 * The files a scratch workspace starts with: workspace-relative path and content.
 *
 * @category constants
 * @since 0.1.0
 */
export const files: ReadonlyArray<readonly [path: string, content: string]> = [
  ["inbox/budget-q3.csv", "month,planned,actual\n2025-07,4200,3980\n2025-08,4200,4415\n2025-09,4400,4390\n"],
  [
    "inbox/call-with-supplier.md",
    "# Call with the supplier\n\nThe second pallet leaves on Thursday. They ask for the new address in writing.\n"
  ],
  ["inbox/contacts.csv", "name,role,phone\nAda Lindqvist,facilities,555-0134\nTomas Okafor,printing,555-0171\n"],
  [
    "inbox/draft-newsletter.md",
    "# Newsletter, November (draft)\n\nThe reading room opens again. TODO: ask Ada for the photograph.\n"
  ],
  [
    "inbox/draft-proposal.md",
    "# Proposal for a second reading room (draft)\n\n## Cost\n\nStill to be agreed with facilities.\n"
  ],
  [
    "inbox/draft-thank-you.md",
    "# Thank-you letter (draft)\n\nDear volunteers, the autumn sale paid for the new shelves.\n"
  ],
  ["inbox/inventory.csv", "item,count,shelf\nfolding chair,24,B2\nprojector,1,A1\nextension lead,6,A3\n"],
  [
    "inbox/meeting-2025-10-02.md",
    "# Meeting of 2 October 2025\n\n- Present: Ada, Tomas\n- Decided: the sale is on the 18th\n- Open: the cash box\n"
  ],
  [
    "inbox/meeting-2025-10-16.md",
    "# Meeting of 16 October 2025\n\n- Present: Ada, Mirela\n- Decided: no second sale this year\n"
  ],
  [
    "inbox/printer-settings.txt",
    "Tray 2 takes the heavy paper. Duplex off for labels.\nToner was last changed on 2025-09-11.\n"
  ],
  ["inbox/reading-list.txt", "The Left Hand of Darkness\nA Field Guide to Getting Lost\nThe Summer Book\n"],
  ["inbox/room-booking.md", "# Room booking\n\nThe large room is ours on Tuesdays until the end of December.\n"]
]

/**
 * Creates a workspace in a temporary directory, with `files` in it and the target directory empty. Unless `keep` is
 * set, the directory and everything an agent made in it are removed when the scope closes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const scratch = Effect.fn("Workspace.scratch")(function* (options?: {
  readonly keep?: boolean | undefined
  /** The directory to create it in. The system's temporary directory unless said. */
  readonly directory?: string | undefined
}): Effect.fn.Return<Workspace, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const kept = options?.keep ?? false
  const where = { prefix: "midcourse-", directory: options?.directory }
  const created = yield* kept ? fs.makeTempDirectory(where) : fs.makeTempDirectoryScoped(where)
  const root = yield* fs.realPath(created)
  yield* fill(root)
  return { root, origin: "scratch", kept }
})

const fill = Effect.fnUntraced(function* (root: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(path.join(root, source), { recursive: true })
  yield* fs.makeDirectory(path.join(root, target), { recursive: true })
  yield* Effect.forEach(files, ([name, content]) => fs.writeFileString(path.join(root, name), content), {
    discard: true
  })
})

/**
 * The scratch workspace of a store: the directory of its name and `.workspace`. It is made whole or not at all, used as it
 * is when it is there, and never removed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const beside = Effect.fn("Workspace.beside")(function* (
  store: string
): Effect.fn.Return<Workspace, PlatformError.PlatformError | WorkspaceError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const wanted = `${store}.workspace`
  if (!(yield* fs.exists(wanted))) {
    const made = yield* fs.makeTempDirectory({ directory: path.dirname(store), prefix: `${path.basename(wanted)}-` })
    yield* Effect.andThen(fill(made), fs.rename(made, wanted)).pipe(
      Effect.onError(() => Effect.ignore(fs.remove(made, { recursive: true })))
    )
  }
  const { root } = yield* adopt(wanted)
  return { root, origin: "scratch", kept: true }
})

/**
 * Takes an existing directory as the workspace. Nothing is written to it and nothing removes it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const adopt = Effect.fn("Workspace.adopt")(function* (
  directory: string
): Effect.fn.Return<Workspace, PlatformError.PlatformError | WorkspaceError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const wanted = path.resolve(directory)
  if (!(yield* fs.exists(wanted))) {
    return yield* new WorkspaceError({ directory: wanted, reason: "not-found" })
  }
  const root = yield* fs.realPath(wanted)
  const info = yield* fs.stat(root)
  if (info.type !== "Directory") {
    return yield* new WorkspaceError({ directory: wanted, reason: "not-a-directory" })
  }
  return { root, origin: "adopted", kept: true }
})

/**
 * The workspace a command line asks for: the directory it names, or else a scratch one, beside the store if there is one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const open = (options: {
  readonly directory?: string | undefined
  readonly store?: string | undefined
  readonly keep?: boolean | undefined
}): Effect.Effect<
  Workspace,
  PlatformError.PlatformError | WorkspaceError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> => {
  if (options.directory !== undefined) return adopt(options.directory)
  return options.store === undefined ? scratch({ keep: options.keep }) : beside(options.store)
}
