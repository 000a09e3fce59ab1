import { z } from 'zod';
import type { GlobalOptions } from '../command.ts';
import type { Term, ThingName } from '../syntax/declaration.ts';
import { inquire } from './ask.ts';

/** Where a kind of things is listed, the member of each that is its id, and those that tell it from others. */
interface Source {
  readonly path: string;
  readonly member: string;
  readonly id: string;
  readonly words: readonly string[];
}

const sources: Readonly<Record<ThingName, Source>> = {
  account: { path: '/admin/v1/accounts', member: 'accounts', id: 'account_id', words: ['name'] },
  act: { path: '/admin/v1/audit', member: 'acts', id: 'id', words: ['act', 'subject'] },
  collection: {
    path: '/admin/v1/collections',
    member: 'collections',
    id: 'collection_id',
    words: ['name'],
  },
  coupon: { path: '/agent/v1/coupons', member: 'coupons', id: 'id', words: ['code', 'state'] },
  operation: { path: '/admin/v1/outbox', member: 'operations', id: 'id', words: ['kind', 'state'] },
  product: { path: '/admin/v1/products', member: 'products', id: 'product_key', words: ['name'] },
  purchase: { path: '/admin/v1/purchases', member: 'purchases', id: 'purchase_id', words: ['date'] },
  token: { path: '/admin/v1/tokens', member: 'tokens', id: 'token_id', words: ['label', 'scopes'] },
};

/** Nobody waits longer for the tab key. */
const timeoutMs = 1000;
const most = 100;

/** The ids of a kind that the running daemon has, each with words about it; none when it does not answer. */
export async function listThings(options: GlobalOptions, kind: ThingName): Promise<readonly Term[]> {
  const { path, member, id, words } = sources[kind];
  const schema = z.object({ [member]: z.array(z.record(z.string(), z.unknown())) });
  const asked = await inquire(options, { path, query: { limit: most }, timeoutMs }, schema);
  if (!asked.ok) return [];
  return (asked.data[member] ?? []).map((thing) => ({
    term: String(thing[id]),
    meaning: words
      .map((name) => tell(thing[name]))
      .join(' ')
      .trim(),
  }));
}

function tell(value: unknown): string {
  if (Array.isArray(value)) return value.map(tell).join(',');
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ') : '';
}
