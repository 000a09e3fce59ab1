import type { AccountObject } from '../../../../../wire/access.ts';
import { send } from '../../api.ts';
import { Field, fieldText } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Secret } from '../../parts/secret.tsx';
import { rotate } from '../../parts/rotate.tsx';

/** Accounts: sellers that share this authority and see nothing of each other. */
const accounts: List<AccountObject> = {
  title: 'Accounts',
  intro: (
    <p class="quiet">
      Each account has an API key, products, coupons and customers of its own. Most sellers need only the
      account <code>default</code>.
    </p>
  ),
  from: ['/admin/v1/accounts', 'accounts', 50],
  command: 'latchkey account list',
  caption: 'Accounts',
  empty: 'There is no account.',
  keyOf: ({ account_id: id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { name: 'Account', cell: ({ name }) => name },
    { name: 'Id', cell: ({ account_id: id }) => <code>{id}</code> },
  ],
  actions: ({ account_id: id, name }) => [
    rotate({
      what: 'API key',
      of: name,
      command: `latchkey account rotate ${quoted(id)}`,
      run: async (body) =>
        (await send<AccountObject>('POST', `/admin/v1/accounts/${encodeURIComponent(id)}/rotate-key`, body))
          .api_key,
    }),
  ],
  add: {
    label: 'Add an account',
    title: 'Add an account',
    consequence:
      'Another seller gets an API key, and sees nothing of the other accounts. The key is shown once.',
    command: (form) => `latchkey account add ${quoted(fieldText(form, 'name') || 'NAME')}`,
    run: async (form) => {
      const body = { name: fieldText(form, 'name') };
      const { api_key: apiKey } = await send<AccountObject>('POST', '/admin/v1/accounts', body);
      return <Secret name="API key" secret={apiKey} />;
    },
    children: <Field label="Name" name="name" isRequired />,
  },
};

export const Accounts = () => <ListPage list={accounts} />;
