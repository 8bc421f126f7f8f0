/**
 * Writes the complete programs in README.md and docs/ (blocks marked `<!-- compile -->`) to .docs/, with a tsconfig
 * that gives them the package by its public names, for tsc to check.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeBlocksOf, documents, programs } from "./documents.ts"
import { root } from "./sources.ts"

const folder = join(root, ".docs")
const blocks = programs(documents().flatMap(codeBlocksOf))

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const { document, line, text } of blocks) {
  const name = `${document.replaceAll(/[^A-Za-z0-9]+/g, "-")}-${line}.ts`
  writeFileSync(join(folder, name), `// ${document}:${line}\n${text}\n`)
}
writeFileSync(join(folder, "none.ts"), "export {}\n")
writeFileSync(
  join(folder, "tsconfig.json"),
  JSON.stringify({
    extends: "../tsconfig.json",
    compilerOptions: {
      noUnusedLocals: false,
      paths: { midcourse: ["../src/index.ts"], "midcourse/testing": ["../src/testing/index.ts"] }
    },
    include: ["*.ts"]
  })
)
console.log(`${blocks.length} programs to compile`)
