import { execFile } from 'node:child_process';
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { PublicJwk } from '../../src/features/leases/wire/lease.ts';
import { GuidedMachine as Machine, type Names } from '../support/process/guided-machine.ts';
import { blocksOf, chapterOf, commandsIn, readExample } from '../support/reference/guides.ts';
import { importSources } from '../support/reference/client-guide.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* Does everything that examples/guides/leases.md says, in one story: a vendor, two customers, and a leaked key. */

const run = promisify(execFile);
const guide = readExample('guides/leases.md');

function take(from: Machine, to: Machine, file: string): void {
  copyFileSync(from.path(file), to.path(file));
}

function linesOf(heading: string): [string, ...string[]] {
  const [first, ...rest] = commandsIn(chapterOf(guide, heading));
  if (first === undefined) throw new Error(`The chapter ${heading} has no commands.`);
  return [first, ...rest];
}

it('a vendor, two customers and a program do what the guide about leases says', async () => {
  await using directory = temporaryDirectory();
  const names: Names = new Map();
  const machine = (name: string): Machine => new Machine(join(directory.path, name), names);
  const [vendor, first, second, offline] = [
    machine('vendor'),
    machine('first'),
    machine('second'),
    machine('offline'),
  ];
  await using issuer = await vendor.start({});
  names.set('https://licenses.example.com', issuer.tcp);
  await vendor.type(`latchkey product add Editor --json > product.json`);
  const { product_key: product } = read(vendor, 'product.json') as { product_key: string };
  names.set('RGsF', product);
  await vendor.type(
    'latchkey license issue --product RGsF --email buyer@example.com --entitlement pro --json > license.json',
  );
  const { license } = read(vendor, 'license.json') as { license: { license_key: string } };
  const licenseKey = license.license_key;
  names.set('WTKP4-66NL5-HMKQW-GFSCZ', licenseKey);

  await vendor.typeAll(linesOf('Make the keys'));
  await vendor.typeAll(linesOf('Choose the terms'));
  const [configuration] = blocksOf(chapterOf(guide, 'For your customers: the holder'), 'yaml');
  expect(configuration).toContain('roots: [./root-1.pub.jwk, ./root-2.pub.jwk]');
  const publicFiles = ['root-1.pub.jwk', 'root-2.pub.jwk'].map((name) => vendor.path(`roots/${name}`));
  const settings = { leases: { issuer: issuer.tcp, roots: publicFiles }, products: [{ key: product }] };
  await using firstHolder = await first.start(settings);
  await using _second = await second.start(settings);
  const unreachable = { ...settings.leases, proxy: 'http://127.0.0.1:1' };
  await using _offline = await offline.start({ ...settings, leases: unreachable });

  const [activate, deactivate, replace] = linesOf('For your customers: the holder');
  await first.type(activate);
  const roots = publicFiles.map((file) => JSON.parse(readFileSync(file, 'utf8')) as PublicJwk);
  const [, verdict] = await runProgram(directory.path, {
    url: firstHolder.tcp,
    issuer: issuer.tcp,
    product,
    licenseKey,
    roots,
  });
  expect(verdict).toBe('pro');
  const [list, end, block] = linesOf('Look at the devices, and help a customer');
  names.set('01997a3e-1111-7222-8333-444455556666', await activationOf(vendor, 0));
  // The first device has renewed today: only the vendor can free its seat.
  await vendor.typeAll([list, end ?? '']);
  await second.type(replace ?? '');
  await second.type(deactivate ?? '');

  const [request, sign, install] = linesOf('Machines without a network');
  names.set('2027-06-30', new Date(Date.now() + 90 * 86_400_000).toISOString().slice(0, 10));
  await offline.type(request);
  take(offline, vendor, 'machine.req');
  await vendor.type(sign ?? '');
  take(vendor, offline, 'machine.lease');
  await offline.type(install ?? '');

  await vendor.type(block ?? '');
  const [rotate, listKeys, retire] = linesOf('When a signing key ends, or leaks');
  copyFileSync(vendor.path('roots/root-1.jwk'), vendor.path('root-1.jwk'));
  await vendor.type(rotate);
  await vendor.type(listKeys ?? '');
  await vendor.type('latchkey lease signing-key list --json > keys.json');
  const { keys } = read(vendor, 'keys.json') as { keys: { kid: string }[] };
  names.set('NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs', keys[0]?.kid ?? '');
  await vendor.type(retire ?? '');

  const typed = new Set([vendor, first, second, offline].flatMap((each) => each.typed));
  expect(commandsIn(guide).filter((line) => !typed.has(line))).toEqual([]);
});

function read(machine: Machine, file: string): unknown {
  return JSON.parse(readFileSync(machine.path(file), 'utf8'));
}

async function activationOf(vendor: Machine, index: number): Promise<string> {
  await vendor.type('latchkey activation list --json > activations.json');
  const { activations } = read(vendor, 'activations.json') as { activations: { activation_id: string }[] };
  return activations[index]?.activation_id ?? '';
}

/** Runs the program of the guide with the keys of this shop. Returns the lines that it prints, after an empty one. */
async function runProgram(
  directory: string,
  shop: { url: string; issuer: string; product: string; licenseKey: string; roots: readonly PublicJwk[] },
): Promise<string[]> {
  const [program = ''] = blocksOf(chapterOf(guide, 'Node'), 'ts');
  const source = importSources(program)
    .replace('http://127.0.0.1:8787', shop.url)
    .replace('https://licenses.example.com', shop.issuer)
    .replace('RGsF', shop.product)
    .replace('WTKP4-66NL5-HMKQW-GFSCZ', shop.licenseKey)
    .replace(/roots: \[.*?\n {4}\]/s, () => `roots: ${JSON.stringify(shop.roots)}`);
  const file = join(directory, 'program.mts');
  writeFileSync(file, source);
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(directory, 'node_modules'));
  const { stdout } = await run(process.execPath, [file]);
  return ['', ...stdout.trim().split('\n')];
}

it('the lines of Python in the guide about leases are those of the example', () => {
  const [lines = ''] = blocksOf(chapterOf(guide, 'Python'), 'text');
  const example = readExample('clients/python/license_check.py');
  for (const line of lines.trim().split('\n')) expect(example).toContain(line);
});

it('the test in the guide about leases prints its output', async () => {
  await using directory = temporaryDirectory();
  const chapter = chapterOf(guide, 'Try it, and test it');
  const [program = ''] = blocksOf(chapter, 'ts');
  const file = join(directory.path, 'program.mts');
  writeFileSync(file, importSources(program));
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(directory.path, 'node_modules'));
  const { stdout } = await run(process.execPath, [file]);
  expect([stdout]).toEqual(blocksOf(chapter, 'text'));
});
