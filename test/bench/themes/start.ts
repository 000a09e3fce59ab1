import type { Bench } from '../bench.ts';
import { ratio } from '../figure.ts';
import { programs } from '../program.ts';
import { startBare, startLatchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { plainRow, plainSource, type Row, type Theme } from '../theme.ts';

export const startTheme: Theme = {
  name: 'start',
  about: 'from start to ready, with an empty store and with a full one',
  async *measure(bench) {
    const licenses = bench.count(1_000_000);
    const waiting = bench.count(100_000);
    const states = {
      empty: await copyOfStore(bench, { role: 'agent', licenses: 0 }),
      full: await copyOfStore(bench, { role: 'agent', licenses, waiting }),
    };
    // The upstream answers. Otherwise each stop would wait for the timeout of a request.
    const upstream = (await startBare(bench)).tcp;
    const size = `${licenses.toLocaleString('en')} licenses and ${waiting.toLocaleString('en')} operations`;
    for (const form of bench.shippedForms()) {
      const ready = async (state: string): Promise<number> => {
        await using started = await startLatchkey(bench, { state, upstream, program: programs[form] });
        return started.readyMs;
      };
      const contestants = {
        empty: () => ready(states.empty),
        full: () => ready(states.full),
        bare: () => bareReady(bench),
      };
      const { empty, full, bare } = await bench.alternate(contestants);
      yield* rowsOf(`start of an agent, ${form}`, size, { empty, full, bare });
    }
  },
};

type Ready = Readonly<Record<'empty' | 'full' | 'bare', readonly number[]>>;

function* rowsOf(what: string, size: string, { empty, full, bare }: Ready): Iterable<Row> {
  const from = { bare: plainSource(bare, 'ms') };
  yield plainRow(`${what}, empty`, 'ms', empty, { goal: { atMost: 200 }, from });
  yield {
    what: `${what}, ${size}, to empty`,
    unit: '×',
    figure: ratio(full, empty),
    goal: { atMost: 1.5 },
    from: { full: plainSource(full, 'ms'), empty: plainSource(empty, 'ms') },
    note: null,
  };
}

async function bareReady(bench: Bench): Promise<number> {
  await using started = await startBare(bench, { licenses: 0 });
  return started.readyMs;
}
