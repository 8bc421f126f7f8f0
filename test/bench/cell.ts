/**
 * One cell, one line of JSON: `node test/bench/cell.ts step midcourse-direct 200`. Cells are the files of cells/ and take
 * numbers after the peer; peers are the files of adapters/ and peers/, and those of peers/ need `npm ci` in this folder.
 */
import { existsSync } from "node:fs"
import type { Adapter } from "./adapter.ts"
import type { Cell } from "./cells/cell.ts"

const [name = "", peer = "", ...rest] = process.argv.slice(2)
const here = (path: string): URL => new URL(path, import.meta.url)
const places = [here(`adapters/${peer}.ts`), here(`peers/${peer}.ts`)]
const place = places.find((each) => existsSync(each))
const cell = here(`cells/${name}.ts`)
if (place === undefined || !existsSync(cell)) throw new Error(`there is no cell ${name}, or no peer ${peer}`)

const adapter: Adapter = await import(place.href)
const { run }: { readonly run: Cell } = await import(cell.href)
const numbers = await run(adapter, rest.map(Number))
await adapter.close?.()
const rounded = Object.entries(numbers).map(([name, value]) => [name, Number(value.toPrecision(5))])
console.log(JSON.stringify({ cell: name, peer, args: rest.map(Number), ...Object.fromEntries(rounded) }))
process.exit(0)
