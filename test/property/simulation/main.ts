import { parseArgs } from 'node:util';
import { simulate } from './simulation.ts';

/** `npm run simulate -- --seeds 10000`: plays many seeds; prints those that fail, which replay by `--from N --seeds 1`. */
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    steps: { type: 'string', default: '200' },
  },
});
const [from, seeds, steps] = [Number(values.from), Number(values.seeds), Number(values.steps)];
let failed = 0;
for (let seed = from; seed < from + seeds; seed += 1) {
  const violation = await simulate({ seed, steps });
  if (violation !== null) {
    failed += 1;
    process.stdout.write(`seed ${seed}: ${violation}\n`);
  }
}
process.stdout.write(`${seeds - failed} of ${seeds} seeds held, ${steps} operations each\n`);
process.exitCode = failed === 0 ? 0 : 1;
