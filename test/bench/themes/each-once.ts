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
  about: '10,000 different keys, each requested once, against bare node:http',
  async *measure(bench) {
    const asked = bench.count(10_000);
    // The same number of other keys is requested before, as a warm-up.
    const licenses = 2 * asked;
    const upstream = await startBare(bench, { licenses });
    const states = {
      authority: await copyOfStore(bench, { role: 'authority', licenses }),
      agent: await copyOfStore(bench, { role: 'agent', licenses }),
    };
    const measured = await alternate(bench.effort.rounds, {
      bare: () => askEach(bench, startBare(bench, { licenses }), asked),
      authority: () => askEach(bench, startLatchkey(bench, { state: states.authority }), asked),
      agent: () =>
        askEach(bench, startLatchkey(bench, { state: states.agent, upstream: upstream.tcp }), asked),
    });
    const { bare } = measured;
    for (const role of ['authority', 'agent'] as const) {
      const what = `verify, ${asked.toLocaleString('en')} keys each once, ${role}`;
      yield compare(what, { [role]: measured[role] }, { bare }, { by: 'perSecond', goal: { atLeast: 0.35 } });
    }
  },
};

/** Requests uncached keys from a new process, which was warmed up with other keys. */
async function askEach(bench: Bench, starting: Promise<Server>, count: number): Promise<Measured> {
  await using server = await starting;
  const job = { target: server.tcp, request: verify, connections: 64, ending: 'each key once' } as const;
  await bench.load(server, { ...job, keys: { first: count, count } });
  return await bench.load(server, { ...job, keys: { first: 0, count } });
}
