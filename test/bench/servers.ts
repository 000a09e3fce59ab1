import type { Bench } from './bench.ts';
import { startBare, startLatchkey, type Latchkey, type Server } from './server.ts';
import { copyOfStore } from './stores.ts';

/** The reference server, and both roles of Latchkey with the same license keys. */
export type Servers = { readonly bare: Server; readonly authority: Latchkey; readonly agent: Latchkey };

/** The number of license keys of a store if it does not matter. */
const licenses = 1000;

/** Starts a bare server, an authority, and an agent whose upstream is another bare server. */
export async function startAll(bench: Bench): Promise<Servers> {
  return {
    bare: await startBare(bench),
    authority: await startAuthority(bench),
    agent: await startAgent(bench),
  };
}

export async function startAuthority(bench: Bench): Promise<Latchkey> {
  return await startLatchkey(bench, { state: await copyOfStore(bench, { role: 'authority', licenses }) });
}

export async function startAgent(bench: Bench): Promise<Latchkey> {
  const upstream = await startBare(bench);
  const state = await copyOfStore(bench, { role: 'agent', licenses });
  return await startLatchkey(bench, { state, upstream: upstream.tcp });
}
