import { hash } from 'node:crypto';

const tables = {
  account: 'account',
  product: 'product',
  collection: 'collection',
  collectionMember: 'collection_member',
  license: 'license',
  purchase: 'purchase',
  coupon: 'coupon',
  couponNumber: 'coupon_number',
  token: 'token',
  oldCredential: 'old_credential',
  redemption: 'redemption',
  redemptionCount: 'redemption_count',
  licenseHistory: 'license_history',
  idempotency: 'idempotency',
  setting: 'setting',
  audit: 'audit_event',
  activation: 'activation',
  series: 'series',
  webhookEndpoint: 'webhook_endpoint',
  webhookEvent: 'webhook_event',
  webhookDelivery: 'webhook_delivery',
  syncAgent: 'sync_agent',
  syncFollow: 'sync_follow',
  licenseChange: 'license_change',
} as const;

/** The names of all tables of an authority, without their schema. */
export const tableNames: readonly string[] = Object.values(tables);

/**
 * The names of the tables in statements, always with the schema, because a pooler may lose `search_path`.
 */
export type Names = Readonly<Record<keyof typeof tables, string>> & {
  readonly schema: string;
  /** The channel of notices between the nodes of this authority. All schemas of a database share the channel names. */
  readonly channel: string;
  /** The name of another object in the schema. */
  of(name: string): string;
};

export function namesIn(schema: string): Names {
  const of = (name: string): string => `${quote(schema)}.${quote(name)}`;
  const channel = `latchkey_${hash('sha256', schema).slice(0, 24)}`;
  const named = Object.entries(tables).map(([noun, name]) => [noun, of(name)]);
  return {
    ...(Object.fromEntries(named) as Record<keyof typeof tables, string>),
    schema: quote(schema),
    channel,
    of,
  };
}

/** SQL that names the configured schema instead of `latchkey`. */
export function inSchema({ schema }: Pick<Names, 'schema'>, sql: string): string {
  return sql.replaceAll('latchkey.', () => `${schema}.`);
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
