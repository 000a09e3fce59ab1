import type { AgentObject } from '../../../following/wire/sync.ts';
import { send } from '../api.ts';
import { count } from '../format.ts';
import { Action } from '../parts/action.tsx';
import { SameCommand } from '../parts/command.tsx';
import { Badge } from '../parts/notice.tsx';
import { Heading } from '../parts/page.tsx';
import { ListTable, type Column } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { usePages } from '../use-data.ts';
import { useProductNames, type ProductNames } from './products.tsx';

/** Agents that send changes to this authority, or follow its license keys. */
export function Agents() {
  const pages = usePages<AgentObject>('/admin/v1/agents?limit=50', 'agents');
  const names = useProductNames('authority');
  return (
    <>
      <Heading title="Agents" />
      <ListTable
        caption="Agents, a row for each of their credentials"
        pages={pages}
        columns={columnsOf(names, pages.reload)}
        keyOf={({ number }) => String(number)}
        empty="No agent has appeared yet. A Latchkey whose upstream.base_url names this authority appears here by itself, within a minute of its start."
      />
      <SameCommand line="latchkey agent list" />
    </>
  );
}

function columnsOf(names: ProductNames, onDone: () => void): readonly Column<AgentObject>[] {
  return [
    {
      name: 'Agent',
      cell: ({ number, fingerprint }) => (
        <>
          {number}
          <br />
          <code class="quiet id">{fingerprint}</code>
        </>
      ),
    },
    {
      name: 'Product',
      cell: ({ product_key: key, account_id: account }) => (
        <>
          {key === null ? 'all (API key)' : (names.get(key) ?? key)}
          <br />
          <span class="quiet">account {account}</span>
        </>
      ),
    },
    {
      name: 'State',
      cell: ({ waiting, seen_at: seen, created_at: created }) => (
        <>
          <Badge tone={waiting ? 'ok' : 'quiet'}>{waiting ? 'connected' : 'away'}</Badge>
          <br />
          <span class="quiet">
            seen <Time at={seen} />, first <Time at={created} />
          </span>
        </>
      ),
    },
    { name: 'Followed', kind: 'number', cell: ({ followed }) => count(followed) },
    { name: 'Actions', cell: (agent) => <Forget agent={agent} onDone={onDone} /> },
  ];
}

function Forget({ agent: { number }, onDone }: { agent: AgentObject; onDone: () => void }) {
  return (
    <Action
      label="Forget"
      about={`agent ${number}`}
      title={`Forget the agent ${number}?`}
      consequence="Changes that it has sent stay. If it is not gone, it appears again under another number, and begins to follow its license keys again."
      command={`latchkey agent forget ${number}`}
      isDangerous
      run={() => send('DELETE', `/admin/v1/agents/${number}`)}
      onDone={onDone}
    />
  );
}
