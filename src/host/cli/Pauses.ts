/**
 * A session's pauses in words: what they are about, what ends them, and whether time alone does. Pure.
 *
 * @since 0.1.0
 */
import type { SessionStatus } from "../../domain/Generation.ts"
import type { ResumeCondition } from "../../domain/ResumeCondition.ts"
import type { ToolScope } from "../../domain/ToolScope.ts"
import * as Style from "./Style.ts"

type Pause = SessionStatus["pauses"][number]

/**
 * Whether time alone ends it. What of its conditions is not among the unmet is met.
 *
 * @category predicates
 * @since 0.1.0
 */
export const endsByItself = ({ unmet, until }: Pause): boolean => {
  const left = new Set(unmet.map((condition) => JSON.stringify(condition)))
  const comes = (condition: ResumeCondition): boolean => {
    switch (condition._tag) {
      case "At":
        return true
      case "All":
        return condition.of.every(comes)
      case "Any":
        return condition.of.some(comes)
      case "Manual":
      case "Signal":
      case "Input":
        return !left.has(JSON.stringify(condition))
    }
  }
  return comes(until)
}

/**
 * A condition in words: what has to come, and how a person makes it come.
 *
 * @category formatting
 * @since 0.1.0
 */
export const condition = (condition: ResumeCondition, now: number): string => {
  switch (condition._tag) {
    case "Manual":
      return "/resume"
    case "Signal": {
      const name = Style.clip(Style.clean(condition.name), 60)
      return `the signal ${name} (/resume ${name})`
    }
    case "At":
      return `the time to be up (${duration(condition.instant - now)} more)`
    case "Input":
      return "a further input"
    case "All":
      return condition.of.map((each) => conditionIn(each, now)).join(" and ")
    case "Any":
      return condition.of.map((each) => conditionIn(each, now)).join(" or ")
  }
}

const conditionIn = (each: ResumeCondition, now: number): string =>
  each._tag === "All" || each._tag === "Any" ? `(${condition(each, now)})` : condition(each, now)

const duration = (milliseconds: number): string => {
  const seconds = Math.max(0, milliseconds) / 1000
  return seconds < 10 ? `${Math.ceil(seconds * 10) / 10} s` : `${Math.ceil(seconds)} s`
}

/**
 * What a pause still waits for, in words.
 *
 * @category formatting
 * @since 0.1.0
 */
export const unmet = (pause: Pick<Pause, "unmet" | "until">, now: number): string =>
  pause.until._tag === "All" ? conditions(pause.unmet, now) : condition(pause.until, now)

/**
 * Several conditions in words.
 *
 * @category formatting
 * @since 0.1.0
 */
export const conditions = (several: ReadonlyArray<ResumeCondition>, now: number): string =>
  several.map((each) => condition(each, now)).join(" and ")

/**
 * What a pause is about, in words: nothing for one of all work.
 *
 * @category formatting
 * @since 0.1.0
 */
export const about = (scope: ToolScope | undefined): string =>
  scope === undefined ? "" : ` of ${scope.tools.map((tool) => Style.clean(tool)).join(", ") || "nothing"}`
