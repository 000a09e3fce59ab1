import { hash } from 'node:crypto';

/** The names of all tables of an authority. */
export const tableNames: readonly string[] = [
  'account',
  'product',
  'collection',
  'collection_member',
  'license',
  'purchase',
  'coupon',
  'coupon_number',
  'token',
  'old_credential',
  'redemption',
  'redemption_count',
  'license_history',
  'idempotency',
  'setting',
  'audit_event',
  'activation',
  'series',
  'webhook_endpoint',
  'webhook_event',
  'webhook_delivery',
  'sync_agent',
  'sync_follow',
  'license_change',
];

/** The names of the configured schema. Statements always name it, because a pooler may lose `search_path`. */
export type Names = {
  readonly schema: string;
  /** The channel of notifications between the nodes of this authority. All schemas of a database share the channel names. */
  readonly channel: string;
  /** The name of a table or another object in the schema. */
  of(name: string): string;
};

export function namesIn(schema: string): Names {
  return {
    schema: quote(schema),
    channel: `latchkey_${hash('sha256', schema).slice(0, 24)}`,
    of: (name) => `${quote(schema)}.${quote(name)}`,
  };
}

/** SQL that names the configured schema instead of `latchkey`. */
export function inSchema({ schema }: Pick<Names, 'schema'>, sql: string): string {
  return sql.replaceAll('latchkey.', () => `${schema}.`);
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** SQL for the key of an advisory lock. It includes the schema. */
export function advisoryKey({ schema }: Pick<Names, 'schema'>, what: string): string {
  return `hashtextextended(${literal(`latchkey ${schema} ${what}`)}, 0)`;
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
