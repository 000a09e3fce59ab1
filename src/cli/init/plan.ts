import { stringify } from 'yaml';
import type { DialectName } from '../../domain/dialect.ts';

/** A secret as it stands in the configuration: itself, or the file that holds it. */
export type PlannedSecret = { readonly text: string } | { readonly file: string };

/** The store's API in front of which an agent is put. */
export interface PlannedStore {
  readonly baseUrl: string;
  readonly dialect: DialectName;
  /** Without one, coupons are not served. */
  readonly apiKey: PlannedSecret | null;
  readonly products: readonly { readonly key: string; readonly secret: PlannedSecret }[];
}

/** What a configuration is to say. Paths are as they stand there. */
export interface Plan {
  readonly stateDir: string;
  readonly tcp: string;
  /** Null: where the machine puts it. */
  readonly socket: string | null;
  /** Null: an authority, which is the store itself. */
  readonly store: PlannedStore | null;
}

/** Writes the configuration, with remarks; `#` and no space begins a setting with its default. */
export function formatPlan({ stateDir, tcp, socket, store }: Plan): string {
  const what = store === null ? 'an authority, the central API itself' : 'an agent in front of a store';
  return `# Latchkey: ${what}. Written by: latchkey init
# After a change: latchkey config check, then a reload (SIGHUP); the log names what waits for a restart.
# latchkey config show prints every setting as it is in force. Here one that begins with # has its default.

# The database and the tokens; this directory belongs to one user.
state_dir: ${quote(stateDir)}

listen:
  # Software calls http://${tcp}, without /api/v2, or the socket.
  tcp: ${quote(tcp)}
${socket === null ? '  # socket: ./latchkey.sock' : `  socket: ${quote(socket)}`}
${store === null ? '' : formatStore(store)}
# What is remembered of the changes of a license key.
#history:
#  keep: 90d

#log:
#  level: info
`;
}

function formatStore({ baseUrl, dialect, apiKey, products }: PlannedStore): string {
  const listed = products.map(
    ({ key, secret }) => `  - key: ${quote(key)}\n    ${formatSecret('secret', secret)}\n`,
  );
  return `
upstream:
  # The store's API; /api/v2/... is appended.
  base_url: ${quote(baseUrl)}
  # How it says what the specification leaves open: specification or payhip.
  dialect: ${dialect}
  # For coupons: api_key, or api_key_file with the path of a file that holds it.
  ${apiKey === null ? '# api_key_file: ./api-key' : formatSecret('api_key', apiKey)}

# The products whose license keys are answered for: secret, or secret_file with a path.
${products.length === 0 ? 'products: []\n' : `products:\n${listed.join('')}`}
# How old an answer of the store may be: fresh, then stale, then grace; beyond that nothing is said of the key.
#freshness:
#  fresh: 24h
#  stale: 7d
#  grace: 14d

# single promises that this agent alone changes the uses of its keys, which settles lost answers for certain.
#sync:
#  writers: many
`;
}

function formatSecret(key: string, secret: PlannedSecret): string {
  return 'text' in secret ? `${key}: ${quote(secret.text)}` : `${key}_file: ${quote(secret.file)}`;
}

function quote(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}
