import { globSync } from 'node:fs';
import { join } from 'node:path';

// Features load modules at their first use. Virtual time would pass meanwhile, more of it on a busy machine.
const ofFeatures = join(import.meta.dirname, '../../features');
await Promise.all(
  globSync('*/loaded.ts', { cwd: ofFeatures }).map(
    (file) => import(join(ofFeatures, file)) as Promise<unknown>,
  ),
);
