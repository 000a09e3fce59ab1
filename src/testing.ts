/** A store and an agent in the process of a test (`latchkey/testing`). */
export {
  Sandbox,
  startSandbox,
  type SandboxHolderOptions,
  type SandboxOptions,
} from './daemon/sandbox/testing.ts';
export { SandboxAgent } from './daemon/sandbox/agent.ts';
export { SandboxStore, type SandboxLicense, type SandboxRecord } from './daemon/sandbox/store.ts';
export { SandboxHolder } from './daemon/sandbox/holder.ts';
export {
  SandboxIssuer,
  type SandboxActivation,
  type SandboxLeaseTerms,
  type SandboxRootKey,
} from './daemon/sandbox/issuer.ts';
