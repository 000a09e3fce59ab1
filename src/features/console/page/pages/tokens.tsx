import type { TokenObject } from '../../../../wire/access.ts';
import { send } from '../api.ts';
import { ProductName, useDaemon } from '../daemon.tsx';
import { Checkboxes, Field, fieldText, taken } from '../parts/action.tsx';
import { quoted } from '../parts/command.tsx';
import { Id } from '../parts/id.tsx';
import { ListPage, type List } from '../parts/list.tsx';
import { rotate } from '../parts/rotate.tsx';
import { Secret } from '../parts/secret.tsx';
import { Time } from '../parts/time.tsx';

/** Tokens: who may call this daemon. */
const tokens: List<TokenObject> = {
  title: 'Tokens',
  from: ['/admin/v1/tokens', 'tokens', 50],
  command: 'latchkey token list',
  caption: 'Tokens of software and people',
  empty: 'No token was issued.',
  keyOf: ({ token_id: id }) => id,
  nameOf: ({ label, token_id: id }) => label ?? id,
  columns: [
    {
      name: 'Token',
      cell: ({ label, token_id: id }) =>
        label ?? (id === 'admin.token' ? 'The file admin.token' : 'without a label'),
      below: ({ token_id: id }) => <Id of={id} />,
    },
    { name: 'May', cell: ({ scopes }) => scopes.join(', ') },
    { name: 'Product', cell: ({ product_key: key }) => (key === null ? 'all' : <ProductName of={key} />) },
    {
      name: 'Last used',
      kind: 'named',
      cell: ({ last_used_at: at }) => <Time at={at} />,
      // A token that was never used, and was issued long ago, is perhaps no longer needed.
      below: ({ last_used_at: used, created_at: issued }) =>
        used === null && (
          <>
            issued <Time at={issued} />
          </>
        ),
    },
    { name: 'Ends', kind: 'named', place: 'wide', cell: ({ expires_at: at }) => <Time at={at} /> },
  ],
  actions: ({ token_id: id, label }) =>
    id === 'admin.token'
      ? []
      : [
          rotate({
            what: 'token',
            of: label ?? id,
            command: `latchkey token rotate ${quoted(id)}`,
            run: async (body) =>
              (await send<TokenObject>('POST', `/admin/v1/tokens/${encodeURIComponent(id)}/rotate`, body))
                .token,
          }),
          {
            label: 'Revoke',
            title: `Revoke the token ${label ?? id}?`,
            consequence:
              'Software that uses it is refused at once. This cannot be undone: issue another token instead.',
            command: `latchkey token revoke ${quoted(id)}`,
            isDangerous: true,
            run: () => send('DELETE', `/admin/v1/tokens/${encodeURIComponent(id)}`),
          },
        ],
  add: {
    label: 'Issue a token',
    title: 'Issue a token',
    consequence:
      'Software that sends the token may do what you choose here. The token is shown once: keep it where the software reads it.',
    command: issueCommand,
    run: async (form) => {
      const { token } = await send<TokenObject>('POST', '/admin/v1/tokens', bodyOf(form));
      return <Secret name="token" secret={token} />;
    },
    children: <TokenFields />,
  },
};

export const Tokens = () => <ListPage list={tokens} />;

const scopes: readonly (readonly [scope: string, meaning: string])[] = [
  ['verify', 'ask whether a key is valid'],
  ['use', 'record and undo uses'],
  ['manage', 'enable and disable keys'],
  ['coupons:read', 'read coupons and quote carts'],
  ['coupons:write', 'create and redeem coupons'],
  ['sell', 'issue keys, read purchases, refund'],
  ['ops', 'read the state and the metrics'],
  ['admin', 'everything'],
];

function TokenFields() {
  const { role, productNames } = useDaemon();
  const possible = scopes.filter(([scope]) => role === 'authority' || scope !== 'sell');
  return (
    <>
      <Field label="Label" name="label" help="What will use it, such as “Web shop”." />
      <Checkboxes legend="It may" name="scopes" choices={possible} />
      {productNames.size === 0 ? (
        <Field
          label="Product"
          name="product"
          parameters={['product_key']}
          help="Only for this product; empty: for all."
        />
      ) : (
        <Field
          label="Product"
          name="product"
          parameters={['product_key']}
          options={[
            ['', 'All products'],
            ...[...productNames].map(([key, name]): [string, string] => [key, `${name} (${key})`]),
          ]}
        />
      )}
      <Field
        label="Ends"
        name="expires"
        parameters={['expires_at']}
        type="date"
        help="At the end of this day (UTC); empty: never."
      />
    </>
  );
}

function textsOf(form: FormData): [label: string, product: string, expires: string] {
  return [fieldText(form, 'label'), fieldText(form, 'product'), fieldText(form, 'expires')];
}

function bodyOf(form: FormData): object {
  const [label, product, expires] = textsOf(form);
  return {
    scopes: taken(form, 'scopes'),
    ...(label !== '' && { label }),
    ...(product !== '' && { product_key: product }),
    ...(expires !== '' && { expires_at: `${expires}T23:59:59Z` }),
  };
}

function issueCommand(form: FormData): string {
  const [label, product, expires] = textsOf(form);
  return [
    'latchkey token issue',
    `--scope ${taken(form, 'scopes').join(',') || 'SCOPES'}`,
    ...(product === '' ? [] : [`--product ${quoted(product)}`]),
    ...(label === '' ? [] : [`--label ${quoted(label)}`]),
    ...(expires === '' ? [] : [`--expires ${expires}T23:59:59Z`]),
  ].join(' ');
}
