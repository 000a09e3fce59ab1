import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { AdvancingTime } from '../../src/daemon/system/clock.ts';
import { dialectNames } from '../../src/domain/header-names.ts';
import { Remembering, secret, type Tree } from '../support/app/remembering.ts';
import { type KeptConnection, withoutInstant } from '../support/network/kept-connection.ts';

const hour = 3_600_000;
const names = ['secret', 'old secret', 'token'] as const;
const keys = ['KEY-1', 'KEY-2'] as const;
const targets = ['KEY-1', '%4BEY-1', 'KEY-2&more=1', 'IMPORTED'].map(
  (key) => `/api/v2/license/verify?license_key=${key}`,
);

type Step =
  | { act: 'change'; kind: 'usage' | 'decrease' | 'disable' | 'enable'; key: (typeof keys)[number] }
  | { act: 'refund'; key: (typeof keys)[number] }
  | { act: 'rename' | 'import' | 'revoke' | 'reload' }
  | { act: 'rotate' | 'issue' | 'pass'; hours: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    act: fc.constant('change' as const),
    kind: fc.constantFrom('usage', 'usage', 'decrease', 'disable', 'enable'),
    key: fc.constantFrom(...keys),
  }),
  fc.record({ act: fc.constant('refund' as const), key: fc.constantFrom(...keys) }),
  fc.record({ act: fc.constantFrom('rename', 'import', 'revoke', 'reload') }),
  fc.record({ act: fc.constantFrom('rotate', 'issue', 'pass'), hours: fc.constantFrom(0, 0.5, 1) }),
);

/** An authority, one connection to it, and what it calls the same things otherwise than another does. */
class Twin {
  readonly #asked: Remembering;
  readonly #kept: KeptConnection;
  readonly #secrets: Record<(typeof names)[number], string> = { secret, 'old secret': secret, token: '' };
  readonly #purchases = new Map<string, string>();
  readonly #tree: Tree;
  #tokenId: string | null = null;
  #count = 0;

  constructor(asked: Remembering, tree: Tree) {
    this.#asked = asked;
    this.#kept = asked.connect();
    this.#tree = tree;
  }

  async fill(): Promise<void> {
    await this.#post('products', { name: 'Editor', product_key: 'EDITOR', secret });
    for (const key of keys) {
      const sale = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: key };
      const { purchase_id: id } = await this.#post('purchases', { ...sale, date: '2026-01-02T03:04:05Z' });
      this.#purchases.set(key, String(id));
    }
  }

  /** Does a step, and gives what is answered to it, if a caller asked for it. */
  async take(taken: Step): Promise<string> {
    this.#count += 1;
    const does: Record<Step['act'], (given: never) => unknown> = {
      change: ({ kind, key }: Extract<Step, { act: 'change' }>) => this.#change(kind, key),
      refund: ({ key }: { key: string }) => this.#post(`purchases/${this.#purchases.get(key)}/refund`),
      rename: () => this.#rename(),
      import: () => this.#import(),
      revoke: () => this.#revoke(),
      reload: () => this.#asked.reload(this.#tree),
      rotate: ({ hours }: { hours: number }) => this.#rotate(hours),
      issue: ({ hours }: { hours: number }) => this.#issue(hours),
      pass: ({ hours }: { hours: number }) => this.#asked.time.advance(hours * hour),
    };
    const answer = await does[taken.act](taken as never);
    return typeof answer === 'string' ? answer : '';
  }

  /** What every caller is told of every license now, each twice. */
  async told(): Promise<string[]> {
    const answers: string[] = [];
    for (const name of names) {
      for (const target of [...targets, ...targets]) {
        answers.push(`${name} ${target} ${await this.#send(`GET ${target}`, name)}`);
      }
    }
    return answers;
  }

  async #send(line: string, name: (typeof names)[number], body = ''): Promise<string> {
    const type = body === '' ? '' : 'Content-Type: application/x-www-form-urlencoded\r\n';
    const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
    const head = `Host: localhost\r\nproduct-secret-key: ${this.#secrets[name]}\r\n${type}${length}`;
    const answer = await this.#kept.send(`${line} HTTP/1.1\r\n${head}\r\n${body}`);
    return withoutInstant(answer).replace(/^latchkey-instance: .*$/m, '');
  }

  #change(kind: string, key: string): Promise<string> {
    return this.#send(`PUT /api/v2/license/${kind}`, 'secret', `license_key=${key}`);
  }

  async #rename(): Promise<void> {
    const product = { name: `Editor ${this.#count}`, recurring: false, archived: false };
    await this.#asked.admin('put', '/admin/v1/products/EDITOR', product);
  }

  async #import(): Promise<void> {
    const license = { license_key: 'IMPORTED', buyer_email: 'a@example.com', date: '2026-01-02T03:04:05Z' };
    await this.#post('licenses/import', { product_key: 'EDITOR', licenses: [license] });
  }

  async #rotate(hours: number): Promise<void> {
    this.#secrets['old secret'] = this.#secrets.secret;
    const kept = hours === 0 ? {} : { keep_old_s: (hours * hour) / 1000 };
    this.#secrets.secret = String((await this.#post('products/EDITOR/rotate-secret', kept))['secret']);
  }

  async #issue(hours: number): Promise<void> {
    const expires = new Date(this.#asked.time.read().wall + hours * hour).toISOString();
    const given = { scopes: ['verify'], ...(hours > 0 && { expires_at: expires }) };
    const issued = await this.#post('tokens', given);
    this.#secrets.token = String(issued['token']);
    this.#tokenId = String(issued['token_id']);
  }

  async #revoke(): Promise<void> {
    if (this.#tokenId !== null) await this.#asked.admin('delete', `/admin/v1/tokens/${this.#tokenId}`);
    this.#tokenId = null;
  }

  async #post(path: string, json?: object): Promise<Record<string, unknown>> {
    return (await this.#asked.admin('post', `/admin/v1/${path}`, json)) as Record<string, unknown>;
  }
}

test.each(dialectNames)(
  'after whatever was done, an authority that remembers tells what one tells that does not: %s',
  async (dialect) => {
    const tree: Tree = { listen: { dialect }, limits: { failed_rate: 1_000_000 } };
    const time = new AdvancingTime();
    await using remembering = await new Remembering(time).start(tree);
    await using plain = await new Remembering(time).start(tree, { prepare: () => undefined });
    const twins = [new Twin(remembering, tree), new Twin(plain, tree)] as const;
    for (const twin of twins) await twin.fill();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        for (const taken of steps) {
          const [one, other] = await Promise.all(
            twins.map(async (twin) => [await twin.take(taken), ...(await twin.told())]),
          );
          expect(one).toEqual(other);
        }
      }),
      // Earlier steps are not undone for another attempt.
      { numRuns: 8, endOnFailure: true },
    );
  },
);
