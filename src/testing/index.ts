/**
 * What a host needs to test its own agents: a scripted model, a strict judge of prompts, and an explorer of
 * interleavings.
 *
 * @since 0.1.0
 */

/**
 * @category testing
 * @since 0.1.0
 */
export * as Interleavings from "./Interleavings.ts"

/**
 * @category testing
 * @since 0.1.0
 */
export * as ScriptedModel from "./ScriptedModel.ts"

/**
 * @category testing
 * @since 0.1.0
 */
export * as SessionStoreSuite from "./SessionStoreSuite.ts"

/**
 * @category testing
 * @since 0.1.0
 */
export * as StrictPrompt from "../domain/StrictPrompt.ts"
