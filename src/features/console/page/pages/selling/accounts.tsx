import type { AccountObject } from '../../../../../wire/access.ts';
import { send } from '../../api.ts';
import { Action, Field, fieldText } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Heading } from '../../parts/page.tsx';
import { Secret } from '../../parts/secret.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { usePages } from '../../use-data.ts';
import { KeepOldField } from './products.tsx';

/** Accounts: sellers that share this authority and see nothing of each other. */
export function Accounts() {
  const pages = usePages<AccountObject>('/admin/v1/accounts?limit=50', 'accounts');
  return (
    <>
      <Heading title="Accounts">
        <AddAccount onDone={pages.reload} />
      </Heading>
      <p class="quiet">
        Each account has an API key, products, coupons and customers of its own. Most sellers need only the
        account <code>default</code>.
      </p>
      <ListTable
        caption="Accounts"
        pages={pages}
        columns={columns}
        keyOf={({ account_id: id }) => id}
        empty="There is no account."
      />
      <SameCommand line="latchkey account list" />
    </>
  );
}

const columns: readonly Column<AccountObject>[] = [
  { name: 'Account', cell: ({ name }) => name },
  { name: 'Id', cell: ({ account_id: id }) => <code>{id}</code> },
  { name: 'Actions', cell: (account) => <RollKey account={account} /> },
];

function AddAccount({ onDone }: { onDone: () => void }) {
  return (
    <Action
      label="Add an account"
      title="Add an account"
      consequence="Another seller gets an API key, and sees nothing of the other accounts. The key is shown once."
      command={(form) => `latchkey account add ${quoted(fieldText(form, 'name') || 'NAME')}`}
      run={async (form) => {
        const body = { name: fieldText(form, 'name') };
        const { api_key: apiKey } = await send<AccountObject>('POST', '/admin/v1/accounts', body);
        return <Secret name="API key" secret={apiKey ?? ''} />;
      }}
      onDone={onDone}
    >
      <Field label="Name" name="name" isRequired />
    </Action>
  );
}

function RollKey({ account: { account_id: id, name } }: { account: AccountObject }) {
  const kept = (form: FormData): number => Number(fieldText(form, 'keep'));
  return (
    <Action
      label="New API key"
      about={name}
      title={`Create a new API key of ${name}?`}
      consequence="Software with the old key is refused as soon as the old key ends. The new key is shown once."
      command={(form) =>
        `latchkey account roll ${quoted(id)}${kept(form) === 0 ? '' : ` --keep-old ${kept(form) / 3600}h`}`
      }
      isDangerous
      run={async (form) => {
        const body = kept(form) === 0 ? {} : { keep_old_s: kept(form) };
        const path = `/admin/v1/accounts/${encodeURIComponent(id)}/roll-key`;
        const { api_key: apiKey } = await send<AccountObject>('POST', path, body);
        return <Secret name="new API key" secret={apiKey ?? ''} />;
      }}
    >
      <KeepOldField />
    </Action>
  );
}
