import type { Agent } from '../answers.ts';
import { send } from '../api.ts';
import { ProductName } from '../daemon.tsx';
import { count } from '../format.ts';
import { ListPage, type List } from '../parts/list.tsx';
import { Badge } from '../parts/notice.tsx';
import { Time } from '../parts/time.tsx';

/** Agents that send changes to this authority, or follow its license keys. */
const agents: List<Agent> = {
  title: 'Agents',
  from: ['/admin/v1/agents', 'agents', 50],
  command: 'latchkey agent list',
  caption: 'Agents, a row for each of their credentials',
  empty:
    'No agent has appeared yet. A Latchkey whose upstream.base_url names this authority appears here by itself, within a minute of its start.',
  keyOf: ({ number }) => number,
  nameOf: ({ number }) => `agent ${number}`,
  columns: [
    {
      name: 'Agent',
      cell: ({ number }) => number,
      below: ({ fingerprint }) => <code class="id">{fingerprint}</code>,
    },
    {
      name: 'Product',
      cell: ({ product_key: key }) => (key === null ? 'all (API key)' : <ProductName of={key} />),
      below: ({ account_id: account }) => `account ${account}`,
    },
    {
      name: 'State',
      place: 'side',
      cell: ({ waiting }) => <Badge tone={waiting ? 'ok' : 'quiet'}>{waiting ? 'connected' : 'away'}</Badge>,
      below: ({ seen_at: seen, created_at: created }) => (
        <>
          seen <Time at={seen} />, first <Time at={created} />
        </>
      ),
    },
    { name: 'Followed', kind: 'number', cell: ({ followed }) => count(followed) },
  ],
  actions: ({ number }) => [
    {
      label: 'Forget',
      title: `Forget the agent ${number}?`,
      consequence:
        'Changes that it has sent stay. If it is not gone, it appears again under another number, and begins to follow its license keys again.',
      command: `latchkey agent forget ${number}`,
      isDangerous: true,
      run: () => send('DELETE', `/admin/v1/agents/${number}`),
    },
  ],
};

export const Agents = () => <ListPage list={agents} />;
