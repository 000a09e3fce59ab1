import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { guidePrograms, importSources } from '../support/reference/client-guide.ts';
import { blocksOf, readExample } from '../support/reference/guides.ts';
import { compile } from '../support/process/installed-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
it('the programs of the guides about the client and about leases have no type errors', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'guide'));
  const ofLeases = blocksOf(readExample('guides/leases.md'), 'ts').map(importSources);
  const sources = [...guidePrograms.map(({ source }) => source), ...ofLeases];
  for (const [index, source] of sources.entries()) {
    // The compiler reads no URLs.
    const named = source.replaceAll(/file:\/\/[^']+/g, (url) => fileURLToPath(url));
    writeFileSync(join(directory.path, 'guide', `program-${index}.mts`), named);
  }
  symlinkSync(join(root, 'node_modules'), join(directory.path, 'node_modules'));
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: { rewriteRelativeImportExtensions: false },
    // The sources name types of Web Crypto, unlike the declarations of the package.
    include: [join(directory.path, 'guide'), join(root, 'src/daemon/system/web-crypto.d.ts')],
  };
  writeFileSync(join(directory.path, 'tsconfig.json'), JSON.stringify(project));
  await expect(compile('--project', directory.path)).resolves.toBeUndefined();
});

it('typesVersions and exports name the same declarations', () => {
  const { exports, typesVersions } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: { './client': { require: { types: string } }; './testing': { types: string } };
    typesVersions: Record<string, Record<string, string[]>>;
  };
  expect(typesVersions).toEqual({
    '*': {
      client: [exports['./client'].require.types],
      testing: [exports['./testing'].types],
    },
  });
});
