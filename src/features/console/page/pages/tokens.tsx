import type { OverviewObject } from '../../wire/console.ts';
import type { TokenObject } from '../../../../wire/access.ts';
import { send } from '../api.ts';
import type { PageProps } from '../page-props.ts';
import { Action, Checkboxes, Field, fieldText } from '../parts/action.tsx';
import { quoted, SameCommand } from '../parts/command.tsx';
import { Heading } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { ListTable, type Column } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { useData, usePages } from '../use-data.ts';
import { useProductNames, useProducts, type ProductNames } from './products.tsx';

/** The labels of tokens by id. */
export type TokenLabels = ReadonlyMap<string, string>;

export function useTokenLabels(): TokenLabels {
  const tokens = useData<{ tokens: TokenObject[] }>('/admin/v1/tokens?limit=100').data?.tokens ?? [];
  return new Map(tokens.flatMap(({ token_id: id, label }) => (label === null ? [] : [[id, label] as const])));
}

/** Tokens: who may call this daemon. */
export function Tokens({ overview }: PageProps) {
  const pages = usePages<TokenObject>('/admin/v1/tokens?limit=50', 'tokens');
  const role = overview.data?.role ?? 'authority';
  const names = useProductNames(role);
  return (
    <>
      <Heading title="Tokens">
        <IssueToken role={role} onDone={pages.reload} />
      </Heading>
      <ListTable
        caption="Tokens of software and people"
        pages={pages}
        columns={columnsOf(names, pages.reload)}
        keyOf={({ token_id: id }) => id}
        empty="No token was issued."
      />
      <SameCommand line="latchkey token list" />
    </>
  );
}

function columnsOf(names: ProductNames, onDone: () => void): readonly Column<TokenObject>[] {
  return [
    {
      name: 'Token',
      cell: ({ label, token_id: id }) => (
        <>
          {label ?? (id === 'admin.token' ? 'The file admin.token' : 'without a label')}
          <br />
          <code class="quiet id">{id}</code>
        </>
      ),
    },
    { name: 'May', cell: ({ scopes }) => scopes.join(', ') },
    { name: 'Product', cell: ({ product_key: key }) => (key === null ? 'all' : (names.get(key) ?? key)) },
    { name: 'Last used', cell: lastUse },
    { name: 'Ends', cell: ({ expires_at: at }) => (at === null ? 'never' : <Time at={at} />) },
    {
      name: 'Actions',
      cell: (token) => token.token_id !== 'admin.token' && <Revoke token={token} onDone={onDone} />,
    },
  ];
}

/** A token that was never used, and was issued long ago, is perhaps no longer needed. */
function lastUse({ last_used_at: used, created_at: issued }: TokenObject) {
  if (used !== null) return <Time at={used} />;
  return (
    <>
      never
      <br />
      <span class="quiet">
        issued <Time at={issued} />
      </span>
    </>
  );
}

function Revoke({ token: { token_id: id, label }, onDone }: { token: TokenObject; onDone: () => void }) {
  return (
    <Action
      label="Revoke"
      about={label ?? id}
      title={`Revoke the token ${label ?? id}?`}
      consequence="Software that uses it is refused at once. This cannot be undone: issue another token instead."
      command={`latchkey token revoke ${quoted(id)}`}
      isDangerous
      run={() => send<void>('DELETE', `/admin/v1/tokens/${encodeURIComponent(id)}`)}
      onDone={onDone}
    />
  );
}

type Scope = readonly [scope: string, meaning: string];

const scopes: readonly Scope[] = [
  ['verify', 'ask whether a key is valid'],
  ['use', 'record and undo uses'],
  ['manage', 'enable and disable keys'],
  ['coupons:read', 'read coupons and quote carts'],
  ['coupons:write', 'create and redeem coupons'],
  ['sell', 'issue keys, read purchases, refund'],
  ['ops', 'read the state and the metrics'],
  ['admin', 'everything'],
];

function IssueToken({ role, onDone }: { role: OverviewObject['role']; onDone: () => void }) {
  const products = useProducts(role);
  const possible = scopes.filter(([scope]) => role === 'authority' || scope !== 'sell');
  return (
    <Action
      label="Issue a token"
      title="Issue a token"
      consequence="Software that sends the token may do what you choose here. The token is shown once: keep it where the software reads it."
      command={issueCommand}
      run={async (form) => {
        const issued = await send<TokenObject>('POST', '/admin/v1/tokens', bodyOf(form));
        return <Secret name="token" secret={issued.token ?? ''} />;
      }}
      onDone={onDone}
    >
      <Field label="Label" name="label" help="What will use it, such as “Web shop”." />
      <Checkboxes legend="It may" name="scopes" choices={possible} />
      {products === null ? (
        <Field label="Product" name="product" help="Only for this product; empty: for all." />
      ) : (
        <Field
          label="Product"
          name="product"
          options={[
            ['', 'All products'],
            ...products.map(({ product_key: key, name }): [string, string] => [key, `${name} (${key})`]),
          ]}
        />
      )}
      <Field label="Ends" name="expires" type="date" help="At the end of this day (UTC); empty: never." />
    </Action>
  );
}

function chosenScopes(form: FormData): string[] {
  return form.getAll('scopes').filter((scope) => typeof scope === 'string');
}

function textsOf(form: FormData): [label: string, product: string, expires: string] {
  return [fieldText(form, 'label'), fieldText(form, 'product'), fieldText(form, 'expires')];
}

function bodyOf(form: FormData): object {
  const [label, product, expires] = textsOf(form);
  return {
    scopes: chosenScopes(form),
    ...(label !== '' && { label }),
    ...(product !== '' && { product_key: product }),
    ...(expires !== '' && { expires_at: `${expires}T23:59:59Z` }),
  };
}

function issueCommand(form: FormData): string {
  const chosen = chosenScopes(form).join(',');
  const [label, product, expires] = textsOf(form);
  return [
    'latchkey token issue',
    `--scope ${chosen === '' ? 'SCOPES' : chosen}`,
    ...(product === '' ? [] : [`--product ${quoted(product)}`]),
    ...(label === '' ? [] : [`--label ${quoted(label)}`]),
    ...(expires === '' ? [] : [`--expires ${expires}T23:59:59Z`]),
  ].join(' ');
}
