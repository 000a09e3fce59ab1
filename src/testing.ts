/** A store and an agent in the process of a test (`latchkey/testing`). */
export { Sandbox, startSandbox, type SandboxOptions } from './daemon/sandbox/testing.ts';
export { SandboxAgent } from './daemon/sandbox/agent.ts';
export { SandboxStore, type SandboxLicense, type SandboxRecord } from './daemon/sandbox/store.ts';
