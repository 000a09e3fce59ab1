/**
 * Packs `latchkey-client-VERSION.tgz`: the same client as `latchkey/client`, for programs that only ask an agent. It has no
 * dependencies. `npm run build:client-package` calls this script.
 *
 * Argument: the folder for the tarball. Default: the working directory.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '../..');
const target = resolve(process.argv[2] ?? '.');
const folder = mkdtempSync(join(tmpdir(), 'latchkey-client-'));
const compiler = join(root, 'node_modules/typescript/bin/tsc');

/** Compiles the client. `project`: a file in src/client. */
function compile(project: string, directory: string): void {
  const options = ['--project', join(root, 'src/client', project), '--outDir', join(folder, directory)];
  execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
}

const readme = `# latchkey-client

Asks a Latchkey agent about license keys and coupons, and checks leases. It runs on Node 20 and later, and has no dependencies. It is the same as \`latchkey/client\`, which the guide of Latchkey explains (examples/guides/client.md).

\`\`\`js
import { connect } from 'latchkey-client';

const latchkey = connect({ url: 'http://127.0.0.1:8787', productSecret: 'the-product-secret' });
console.log((await latchkey.verify('WTKP4-66NL5-HMKQW-GFSCZ')).verdict);
\`\`\`
`;

try {
  compile('tsconfig.json', 'esm');
  compile('commonjs.json', 'cjs');
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string;
    license: string;
  };
  const content = {
    name: 'latchkey-client',
    version,
    description: 'Asks a Latchkey agent about license keys and coupons, and checks leases.',
    license,
    type: 'module',
    engines: { node: '>=20' },
    exports: {
      import: { types: './esm/index.d.ts', default: './esm/index.js' },
      require: { types: './cjs/index.d.ts', default: './cjs/index.js' },
    },
    // For TypeScript without `exports`.
    types: './cjs/index.d.ts',
    main: './cjs/index.js',
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);
  writeFileSync(join(folder, 'cjs/package.json'), '{"type":"commonjs"}\n');
  writeFileSync(join(folder, 'README.md'), readme);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  // On Windows, npm is a script that only a shell starts.
  const options = { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' } as const;
  execFileSync('npm', ['pack', '--loglevel', 'error', '--pack-destination', target], options);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
