import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import { hasBalancer, startBalancer, type Balancer } from '../support/network/balancer.ts';
import { runProcess } from '../support/process/command-line.ts';
import { startNodes } from '../features/postgres/support/node-processes.ts';
import { hasPostgres } from '../features/postgres/support/postgres.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Under `npm run test:postgres:full` each node restarts ten times. */
const rounds = process.env['LATCHKEY_TEST_FULL'] === '1' ? 10 : 1;
const callers = 16;
const name = 'licenses.example.com';
const [secret, licenseKey] = ['the-secret-of-the-press', 'AAAAA-BBBBB-CCCCC-DDDDD'];

/**
 * Callers who verify and use a license through a proxy, one request after the other; `outcomes` counts the
 * responses.
 */
class Callers implements AsyncDisposable {
  readonly outcomes: Map<string, number> = new Map();
  readonly #dispatcher: Agent;
  readonly #origin: string;
  readonly #working: Promise<unknown>;
  #isOver = false;

  constructor({ port }: Balancer, ca: Buffer) {
    this.#origin = `https://127.0.0.1:${port}`;
    this.#dispatcher = new Agent({ connect: { ca, servername: name } });
    this.#working = Promise.all(Array.from({ length: callers }, (_, number) => this.#work(number)));
  }

  get answered(): number {
    return this.outcomes.values().reduce((sum, count) => sum + count, 0);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await this.#dispatcher.close();
  }

  async #work(number: number): Promise<void> {
    for (let turn = number; !this.#isOver; turn += 1) {
      const outcome = await (turn % 2 === 0 ? this.#verify() : this.#use());
      this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    }
  }

  async #verify(): Promise<string> {
    return `verify ${await this.#ask('GET', `verify?license_key=${licenseKey}`, null)}`;
  }

  async #use(): Promise<string> {
    return `use ${await this.#ask('PUT', 'usage', `license_key=${licenseKey}`)}`;
  }

  async #ask(method: 'GET' | 'PUT', path: string, body: string | null): Promise<string> {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const headers = { host: name, 'product-secret-key': secret, ...(body !== null && form) };
    try {
      const answer = await this.#dispatcher.request({
        origin: this.#origin,
        path: `/api/v2/license/${path}`,
        method,
        headers,
        body,
      });
      const text = await answer.body.text();
      return answer.statusCode === 200 ? '200' : `${answer.statusCode} ${text}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  }
}

const missing = hasBalancer ? '' : ' (skipped: haproxy is not installed: apt-get install haproxy)';
describe.skipIf(!hasPostgres || !hasBalancer)(`two nodes behind HAProxy${missing}`, () => {
  test('two nodes restart one after the other without a failed request', { timeout: 600_000 }, async () => {
    await using directory = temporaryDirectory();
    const tls = join(directory.path, 'tls');
    expect(await runProcess(['certificate', 'make', '--host', name, '--out', tls])).toMatchObject({
      code: 0,
    });
    await using nodes = await startNodes(2, { allowed_hosts: [name], drain_delay: '5s' });
    const [one, two] = nodes.all;
    if (one === undefined || two === undefined) throw new Error('there are not two nodes');
    const { http, admin: headers } = one;
    const product = { name: 'Press', product_key: 'press', secret };
    await http.post('/admin/v1/products', { headers, json: product });
    const sale = { product_key: 'press', buyer_email: 'a@example.com', license_key: licenseKey };
    expect((await http.post('/admin/v1/purchases', { headers, json: sale })).status).toBe(201);
    await using proxy = await startBalancer(tls, [one.address, two.address]);
    await using asking = new Callers(proxy, readFileSync(join(tls, 'ca.pem')));

    for (let round = 0; round < rounds; round += 1) {
      for (const node of nodes.all) {
        node.process.signal('SIGTERM');
        expect(await node.process.ended).toBe(0);
        await node.start();
        await eventually(async () => (await proxy.up()) === 2);
        const before = asking.answered;
        await eventually(() => asking.answered >= before + 100);
      }
    }
    await asking.end();
    process.stdout.write(`RESTARTED ${2 * rounds} times: ${JSON.stringify([...asking.outcomes])}\n`);
    expect([...asking.outcomes.keys()].toSorted()).toEqual(['use 200', 'verify 200']);
    const verified = await one.http.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers });
    expect(verified.body).toMatchObject({ data: { uses: asking.outcomes.get('use 200') } });
  });
});
