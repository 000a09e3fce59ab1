import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { output } from '../process.ts';
import { licenseKeyOf, productKey } from '../sample.ts';
import { startLatchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { plainRow, type Theme } from '../theme.ts';

export const importTheme: Theme = {
  name: 'import',
  about: 'import of licenses from CSV by the command line',
  async *measure(bench) {
    const licenses = bench.count(100_000);
    const perSecond: number[] = [];
    for (let round = 0; round < bench.effort.fewRounds; round += 1) {
      const file = writeCsv(bench, licenses);
      const state = await copyOfStore(bench, { role: 'authority', licenses: 0 });
      await using authority = await startLatchkey(bench, { state });
      const command = ['license', 'import', file, '--config', authority.configuration];
      const start = performance.now();
      await output([...bench.program, ...command], bench.environment);
      perSecond.push((licenses * 1000) / (performance.now() - start));
    }
    const what = `import of ${licenses.toLocaleString('en')} licenses from CSV`;
    yield plainRow(what, '/s', perSecond, { goal: { atLeast: 50_000 } });
  },
};

function writeCsv(bench: Bench, licenses: number): string {
  const rows = Array.from({ length: licenses }, (_, number) => {
    const licenseKey = licenseKeyOf(number);
    return `${licenseKey},buyer-${number}@example.com,${productKey},${number % 5},true,2026-01-01T00:00:00+00:00`;
  });
  const file = join(bench.directory, 'licenses.csv');
  writeFileSync(file, ['license_key,buyer_email,product_key,uses,enabled,date', ...rows, ''].join('\n'));
  return file;
}
