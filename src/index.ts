/**
 * Midcourse: steering for running agents, with receipts that are true.
 *
 * @since 0.1.0
 */
export * as Agent from "./domain/Agent.ts"
export * as Event from "./domain/Event.ts"
export * as EventCause from "./domain/EventCause.ts"
export * as Generation from "./domain/Generation.ts"
export * as Ids from "./domain/Ids.ts"
export * as Input from "./domain/Input.ts"
export * as Limits from "./domain/Limits.ts"
export * as Receipt from "./domain/Receipt.ts"
export * as ResumeCondition from "./domain/ResumeCondition.ts"
export * as SessionError from "./domain/SessionError.ts"
export * as ToolCall from "./domain/ToolCall.ts"
export * as ToolScope from "./domain/ToolScope.ts"
export * as Uncancellable from "./domain/Uncancellable.ts"
export * as SessionStore from "./ledger/SessionStore.ts"
export * as ContextStore from "./boundary/ContextStore.ts"
export * as Checkpointer from "./engine/Checkpointer.ts"
export * as Compaction from "./engine/Compaction.ts"
export * as ContextPreparation from "./engine/ContextPreparation.ts"
export * as ToolPolicy from "./engine/ToolPolicy.ts"
export * as ToolReconciler from "./engine/ToolReconciler.ts"
export * as AgentRuntime from "./runtime/AgentRuntime.ts"
export * as LiveSteering from "./runtime/LiveSteering.ts"
export * as SqlSessionStore from "./store/SqlSessionStore.ts"
export * as Session from "./runtime/Session.ts"
