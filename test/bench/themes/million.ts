import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { alternate } from '../figure.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, verify } from '../sample.ts';
import { startLatchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

const connections = 64;
const small = 1000;

export const millionTheme: Theme = {
  name: 'million',
  about: 'verify with 1,000,000 licenses, of a cached key and of other keys',
  async *measure(bench) {
    const licenses = bench.count(1_000_000);
    const large = await copyOfStore(bench, { role: 'authority', licenses });
    const few = await copyOfStore(bench, { role: 'authority', licenses: small });
    const what = `verify, ${licenses.toLocaleString('en')} licenses to ${small.toLocaleString('en')}, authority`;
    const first = await alternate(bench.effort.rounds, {
      large: () => askFirst(bench, large),
      small: () => askFirst(bench, few),
    });
    const servers = {
      large: await startLatchkey(bench, { state: large }),
      small: await startLatchkey(bench, { state: few }),
    };
    const contestants = {
      large: () => askKnown(bench, servers.large),
      small: () => askKnown(bench, servers.small),
    };
    const known = await bench.alternate(contestants);
    const hit = { by: 'perSecond', goal: { atLeast: 0.9 } } as const;
    yield compare(`${what}: hit`, { large: known.large }, { small: known.small }, hit);
    const miss = { by: 'perSecond', goal: { atLeast: 0.7 } } as const;
    yield compare(`${what}: miss`, { large: first.large }, { small: first.small }, miss);
  },
};

async function askKnown(bench: Bench, server: Server): Promise<Measured> {
  return await bench.load(server, {
    target: server.tcp,
    request: verify,
    keys: oneKey,
    connections,
  });
}

/** Requests uncached keys from a new process, which was warmed up with another key. */
async function askFirst(bench: Bench, state: string): Promise<Measured> {
  await using server = await startLatchkey(bench, { state });
  await askKnown(bench, server);
  return await bench.load(server, {
    target: server.tcp,
    request: verify,
    keys: { first: 1, count: small - 1 },
    connections,
    ending: 'each key once',
  });
}
