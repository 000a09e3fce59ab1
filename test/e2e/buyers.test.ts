import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { openReceiver } from '../features/webhooks/support/webhooks.ts';
import { fieldsOf, textOf } from '../features/buyers/support/shop.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { GuidedMachine, type Names } from '../support/process/guided-machine.ts';
import { patienceMs } from '../support/patience.ts';
import { blocksOf, chapterOf, commandsIn, readExample } from '../support/reference/guides.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* Does what examples/guides/buyers.md says: the page by curl, as a buyer without scripts; then a stranger who guesses. */

const run = promisify(execFile);
const guide = readExample('guides/buyers.md');
const buyerEmail = 'buyer@example.com';

/** Sends forms as curl does, and reads pages. */
class Curl {
  readonly #url: string;
  constructor(url: string) {
    this.#url = url;
  }

  async text(path: string, ...options: string[]): Promise<string> {
    return (await run('curl', ['-sS', ...options, `${this.#url}${path}`])).stdout;
  }

  /** The form of a page with this action, with further fields, of which some name files (`file=@machine.req`). */
  async form(path: string, page: string, ...fields: string[]): Promise<string> {
    const hidden = Object.entries(fieldsOf({ body: page }, path)).map(([name, value]) => `${name}=${value}`);
    return await this.text(path, ...[...hidden, ...fields].flatMap((field) => ['-F', field]));
  }
}

function linesOf(heading: string): [string, ...string[]] {
  const [first, ...rest] = commandsIn(chapterOf(guide, heading));
  if (first === undefined) throw new Error(`The chapter ${heading} has no commands.`);
  return [first, ...rest];
}

it('a seller and a buyer do what the guide says, and 10,000 guesses of a stranger learn nothing', async () => {
  await using directory = temporaryDirectory();
  await using receiver = await openReceiver();
  const names: Names = new Map([['https://shop.example.com/latchkey', receiver.url]]);
  const [seller, machine] = ['seller', 'machine'].map(
    (name) => new GuidedMachine(join(directory.path, name), names),
  ) as [GuidedMachine, GuidedMachine];
  const { listen } = parse(blocksOf(chapterOf(guide, 'Turn the page on'), 'yaml')[0] ?? '') as {
    listen: { public: object };
  };
  const listening = { ...listen, tcp: '127.0.0.1:0', public: { ...listen.public, address: '127.0.0.1:0' } };
  await using shop = await seller.start({ listen: listening, webhooks: { out: { allow: ['127.0.0.0/8'] } } });
  const { public: url } = (await shop.said('ready')) as unknown as { public: string };
  const read = async (line: string): Promise<Record<string, unknown>> => {
    await seller.type(`${line} --json > out.json`);
    return JSON.parse(readFileSync(seller.path('out.json'), 'utf8')) as Record<string, unknown>;
  };
  const product = String((await read('latchkey product add Editor'))['product_key']);
  await seller.type(`latchkey product update ${product} --seats 1 --refresh 10s`);
  const sale = `latchkey license issue --product ${product} --email ${buyerEmail}`;
  const { license } = (await read(sale)) as { license: { license_key: string } };
  const licenseKey = license.license_key;
  names.set('WTKP4-66NL5-HMKQW-GFSCZ', licenseKey);
  await read(`latchkey lease setup --issuer ${shop.tcp} --roots roots`);
  const roots = [1, 2].map((number) => seller.path(`roots/root-${number}.pub.jwk`));
  await using _holder = await machine.start({
    leases: { issuer: shop.tcp, roots, proxy: 'http://127.0.0.1:1' },
    products: [{ key: product }],
  });

  // The keys of a buyer go to the system of the seller.
  await seller.typeAll(linesOf('Lost license keys'));
  const curl = new Curl(url);
  const start = await curl.text('/license', '-H', 'Accept-Language: en');
  expect(textOf({ body: start })).toContain('Ada’s Editor\nYour license\n');
  const asked = await curl.form('/license/recover', start, `email=${buyerEmail}`);
  const [event] = await receiver.until(1);
  expect(JSON.parse(event?.body ?? '')).toMatchObject({ data: { license_keys: [licenseKey] } });
  const [shape] = blocksOf(guide, 'json').map((block) => JSON.parse(block) as { data: object });
  expect(Object.keys(shape?.data ?? {})).toEqual(
    Object.keys((JSON.parse(event?.body ?? '') as { data: object }).data),
  );
  expect(await curl.form('/license/recover', start, 'email=eve@example.com')).toBe(asked);

  // A machine without a network.
  const entries = [`license_key=${licenseKey}`, `email=${buyerEmail}`];
  const opened = await curl.form('/license', start, ...entries);
  expect(textOf({ body: opened })).toContain('Seats\n0 of 1 taken\nDevices\nNo device uses this license.');
  const [request, install] = linesOf('A machine without a network');
  await machine.type(request);
  const file = `file=@${machine.path('machine.req')}`;
  writeFileSync(machine.path('machine.lease'), await curl.form('/license/answer', opened, file, 'as=file'));
  await machine.type(install ?? '');
  const code = await curl.form('/license/answer', opened, file, 'as=code');
  expect(code).toContain('<svg');

  const used = await curl.form('/license', start, ...entries);
  expect(textOf({ body: used })).toContain('Seats\n1 of 1 taken');

  // Guesses: the license key, then the address, from 500 networks.
  await using stranger = httpClient({ tcp: url });
  await using program = httpClient({ tcp: shop.tcp });
  const headers = {
    authorization: `Bearer ${readFileSync(seller.path('state/admin.token'), 'utf8').trim()}`,
  };
  const bodies = new Map<string, number>();
  let verified = 0;
  const guess = async (number: number): Promise<void> => {
    const network = `10.${number % 2}.${Math.floor(number / 2) % 250}.1`;
    const form =
      number < 5_000
        ? {
            license_key: `ABCDE-FGHJK-LMNPQ-${String(22_222 + number).replaceAll(/[01]/g, 'A')}`,
            email: buyerEmail,
          }
        : { license_key: licenseKey, email: `buyer${number}@example.com` };
    const { status, body } = await stranger.post('/license', {
      headers: { 'x-forwarded-for': network },
      form,
    });
    const answer = `${status} ${String(body)}`;
    bodies.set(answer, (bodies.get(answer) ?? 0) + 1);
  };
  for (let number = 0; number < 10_000; number += 50) {
    const verify = program.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers });
    await Promise.all(Array.from({ length: 50 }, (_, index) => guess(number + index)));
    if ((await verify).status === 200) verified += 1;
  }
  expect(verified).toBe(200);
  const statuses = [...bodies.keys()].map((answer) => answer.slice(0, 3));
  // One page for each answer; the page of a limit says how many minutes are left.
  expect(statuses.filter((status) => status === '404')).toHaveLength(1);
  expect(new Set(statuses)).toEqual(new Set(['404', '429']));
  const log = JSON.stringify(shop.lines) + shop.complaints;
  expect(log).toContain('refused');
  for (const secret of [licenseKey, buyerEmail, 'eve@example.com', 'ABCDE-FGHJK'])
    expect(log).not.toContain(secret);
  expect(shop.lines.filter(({ msg }) => msg === 'refused').length).toBeLessThan(200);

  // The seat of the machine, which is in use for ten seconds.
  const question = await vi.waitFor(
    async () => {
      const asking = await curl.form('/license/seat', used);
      expect(textOf({ body: asking })).toContain('This is one of them; left after it: 2.');
      return asking;
    },
    { timeout: patienceMs, interval: 1_000 },
  );
  const freed = await curl.form('/license/seat', question, 'confirmed=yes');
  expect(textOf({ body: freed })).toContain('Seats\n0 of 1 taken');
  await seller.typeAll(linesOf('Devices and seats'));

  const typed = new Set([...seller.typed, ...machine.typed]);
  expect(commandsIn(guide).filter((line) => !typed.has(line))).toEqual([]);
});
