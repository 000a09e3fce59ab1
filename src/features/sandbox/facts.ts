import { type DialectName, credentialHeaders } from '../../domain/header-names.ts';
import type { FileCredentials } from './files.ts';
import type { SandboxRootKey } from './issuer.ts';

/** What the command prints; the names are those of its JSON. */
export type SandboxFacts = FileCredentials & {
  address: string;
  admin_token: string;
  state: string;
  dialect: DialectName;
  /** The address of the agent. */
  agent: string | null;
  agent_state: string | null;
  /** Whether the store sends events to the agent. */
  webhooks: boolean;
  /** The configuration that was written for an agent. */
  configuration: string | null;
  /** A holder of leases, and what its program has compiled in. */
  holder: { address: string; issuer: string; roots: readonly SandboxRootKey[] } | null;
  /** The folder that keeps the data; null: the data is removed. */
  kept: string | null;
};

/** The facts for a person. `program`: what the person types to call Latchkey. */
export function describeSandbox(facts: SandboxFacts, program: string): string {
  const { address, agent, kept, ...credentials } = facts;
  const ending =
    kept === null
      ? 'Ctrl-C ends it and removes its data.'
      : `Ctrl-C ends it. Its data stays in ${kept}: the same command brings it back.`;
  return `A sandbox of the store's API is running. ${ending}

  address         ${address}
  API key         ${credentials.api_key}
  product         ${credentials.product_key}
  product secret  ${credentials.product_secret}
  license key     ${credentials.license_key}
  admin token     ${credentials.admin_token}
  state           ${credentials.state}

Try it:
  curl -H '${credentialHeaders.productSecret}: ${credentials.product_secret}' \\
    '${agent ?? address}/api/v2/license/verify?license_key=${credentials.license_key}'

Open its console:
  ${program} console --admin --state-dir ${credentials.state}

${facts.holder === null ? '' : describeHolder(facts, facts.holder, program)}${adviceOn(facts, program)}`;
}

function adviceOn(facts: SandboxFacts, program: string): string {
  if (facts.webhooks) return describeWebhooks(facts, program);
  return facts.holder === null ? adviseAgent(facts, program) : '';
}

/** The way of a refund: an event of the store, a read of the agent, and a notice to the device. */
function describeWebhooks(
  { agent, license_key, product_secret, state, holder }: SandboxFacts,
  program: string,
): string {
  return `${holder === null ? '' : '\n'}The store sends an event about each refund to the agent on ${agent}, as Payhip does.
Refund the license, and ask ${holder === null ? 'the agent' : 'the agent and the holder'} again within seconds:
  ${program} purchase refund ${license_key} --state-dir ${state}
  curl -H '${credentialHeaders.productSecret}: ${product_secret}' \\
    '${agent}/api/v2/license/verify?license_key=${license_key}'
${holder === null ? '' : `  curl '${holder.address}/api/v2/license/verify?license_key=${license_key}'\n`}`;
}

function describeHolder(
  { license_key, state, webhooks }: SandboxFacts,
  { address, issuer, roots }: NonNullable<SandboxFacts['holder']>,
  program: string,
): string {
  return `A holder of leases answers on ${address}, without the product secret.${webhooks ? '' : ' A license has 3 seats.'}
Compile into a program that checks leases:
  issuer: "${issuer}"
  roots: [
${roots.map((root) => `    ${JSON.stringify(root)}`).join(',\n')}
  ]

Try it:
  curl '${address}/api/v2/license/verify?license_key=${license_key}'
  curl '${address}/agent/v1/lease?license_key=${license_key}&nonce=0123456789abcdef'
${webhooks ? '' : `  ${program} activation list --state-dir ${state}\n  ${program} disable ${license_key} --state-dir ${state}\n`}`;
}

function adviseAgent(facts: SandboxFacts, program: string): string {
  const { address, agent, agent_state, configuration, api_key, product_key, product_secret, dialect } = facts;
  if (configuration !== null)
    return `Put an agent in front of it, in another terminal:\n  ${program} serve --config ${configuration}\n`;
  if (agent !== null)
    return `An agent in front of it answers on ${agent}
Open the console of the agent:
  ${program} console --admin --state-dir ${agent_state}
`;
  return `Put an agent in front of it:
  upstream: { base_url: '${address}', api_key: '${api_key}', dialect: ${dialect} }
  products: [{ key: '${product_key}', secret: '${product_secret}' }]
`;
}
