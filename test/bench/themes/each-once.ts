import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { alternate } from '../figure.ts';
import type { Measured } from '../load/load.ts';
import { verify } from '../sample.ts';
import { startBare, startLatchkey, type Server } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

export const eachOnceTheme: Theme = {
  name: 'each-once',
  about: '10,000 different keys, each asked for once, against bare node:http',
  async *measure(bench) {
    const licenses = bench.count(10_000);
    const upstream = await startBare(bench, { licenses });
    const states = {
      authority: await copyOfStore(bench, { role: 'authority', licenses }),
      agent: await copyOfStore(bench, { role: 'agent', licenses }),
    };
    const measured = await alternate(bench.effort.rounds, {
      bare: () => askEach(bench, startBare(bench, { licenses }), licenses),
      authority: () => askEach(bench, startLatchkey(bench, { state: states.authority }), licenses),
      agent: () =>
        askEach(bench, startLatchkey(bench, { state: states.agent, upstream: upstream.tcp }), licenses),
    });
    const { bare } = measured;
    for (const role of ['authority', 'agent'] as const) {
      const what = `verify, ${licenses.toLocaleString('en')} keys each once, ${role}`;
      yield compare(what, { [role]: measured[role] }, { bare }, { by: 'perSecond', goal: { atLeast: 0.35 } });
    }
  },
};

/** Asks a new process, which no cache helps; how it answers, it has run before with one of the keys. */
async function askEach(bench: Bench, starting: Promise<Server>, count: number): Promise<Measured> {
  await using server = await starting;
  const job = { target: server.tcp, request: verify, connections: 64 };
  await bench.load(server, { ...job, keys: { first: 0, count: 1 } });
  return await bench.load(server, { ...job, keys: { first: 0, count }, ending: 'each key once' });
}
