#!/usr/bin/env node
/**
 * The entry of the terminal program. It needs `@effect/platform-node`, which the library itself does not: without it, it
 * says what to install.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import * as Program from "./Program.ts"
import * as Terminal from "./Terminal.ts"

const services = await import("@effect/platform-node/NodeServices").catch(() => undefined)

Terminal.run(
  services === undefined
    ? Effect.sync(() => {
        Terminal.complain(
          "the terminal program needs the package @effect/platform-node: npm install @effect/platform-node@4.1.0"
        )
        return Program.exitCodes.failed
      })
    : Effect.provide(Program.run(Terminal.args()), services.layer)
)
