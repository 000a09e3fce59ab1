/** A store and an agent in the process of a test (`latchkey/testing`). */
export {
  Sandbox,
  startSandbox,
  type SandboxHolderOptions,
  type SandboxOptions,
} from './features/sandbox/testing.ts';
export { SandboxAgent } from './features/sandbox/agent.ts';
export { SandboxStore, type SandboxLicense, type SandboxRecord } from './features/sandbox/store.ts';
export { SandboxHolder } from './features/sandbox/holder.ts';
export {
  SandboxIssuer,
  type SandboxActivation,
  type SandboxLeaseTerms,
  type SandboxRootKey,
} from './features/sandbox/issuer.ts';
