/** A store and an agent in the process of a test (`latchkey/testing`). */
export { Sandbox, startSandbox, type SandboxOptions } from './daemon/testing/sandbox.ts';
export { SandboxAgent } from './daemon/testing/sandbox-agent.ts';
export { SandboxStore, type SandboxLicense, type SandboxRecord } from './daemon/testing/sandbox-store.ts';
