/**
 * Refuses to publish the npm package while package.json has addresses that cannot exist: they end in `.invalid`, because
 * Latchkey has no public repository yet. `npm publish` calls this script.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
const { homepage, bugs, repository } = JSON.parse(text) as Record<string, unknown>;
const wrong = Object.entries({ homepage, bugs, repository }).filter(([, value]) =>
  JSON.stringify(value).includes('.invalid/'),
);
if (wrong.length > 0) {
  const names = wrong.map(([name]) => name).join(', ');
  process.stderr.write(`package.json: ${names}: write the real address before the package is published\n`);
  process.exitCode = 1;
}
