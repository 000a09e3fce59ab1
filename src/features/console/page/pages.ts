import type { ComponentType } from 'preact';
import type { OverviewObject } from '../wire/console.ts';
import { Agents } from './pages/agents.tsx';
import { Audit } from './pages/audit.tsx';
import { Devices } from './pages/licenses/devices.tsx';
import { Licenses } from './pages/licenses/licenses.tsx';
import { Doctor } from './pages/doctor.tsx';
import { Outbox } from './pages/outbox.tsx';
import { Overview } from './pages/overview.tsx';
import { Accounts } from './pages/selling/accounts.tsx';
import { Coupons } from './pages/selling/coupons.tsx';
import { Exchange } from './pages/selling/exchange.tsx';
import { Products } from './pages/selling/products.tsx';
import { Purchases } from './pages/selling/purchases.tsx';
import { Settings } from './pages/settings.tsx';
import { Tokens } from './pages/tokens.tsx';
import { Webhooks } from './pages/webhooks.tsx';
import type { PageProps } from './page-props.ts';

export type PageEntry = {
  /** The first part of the path. */
  readonly path: string;
  readonly title: string;
  /** The heading over its link; '': none. */
  readonly group: '' | 'Selling' | 'Access' | 'This machine';
  readonly roles: readonly OverviewObject['role'][];
  readonly Page: ComponentType<PageProps>;
  /** How many things on the page need a person. */
  readonly needs?: (overview: OverviewObject) => number;
};

function undecided({ outbox }: OverviewObject): number {
  return outbox === null ? 0 : outbox.held + outbox.conflicted + outbox.dead;
}

/** A holder serves no console. */
const everywhere = ['authority', 'agent'] as const;

/** The pages in the order of the menu. */
export const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', group: '', roles: everywhere, Page: Overview },
  { path: 'licenses', title: 'Licenses', group: '', roles: everywhere, Page: Licenses },
  { path: 'devices', title: 'Devices', group: '', roles: everywhere, Page: Devices },
  { path: 'outbox', title: 'Outbox', group: '', roles: ['agent'], Page: Outbox, needs: undecided },
  { path: 'products', title: 'Products', group: 'Selling', roles: ['authority'], Page: Products },
  { path: 'purchases', title: 'Purchases', group: 'Selling', roles: ['authority'], Page: Purchases },
  { path: 'coupons', title: 'Coupons', group: 'Selling', roles: everywhere, Page: Coupons },
  { path: 'exchange', title: 'Import and export', group: 'Selling', roles: ['authority'], Page: Exchange },
  { path: 'agents', title: 'Agents', group: 'Access', roles: ['authority'], Page: Agents },
  { path: 'webhooks', title: 'Webhooks', group: 'Access', roles: everywhere, Page: Webhooks },
  { path: 'tokens', title: 'Tokens', group: 'Access', roles: everywhere, Page: Tokens },
  { path: 'accounts', title: 'Accounts', group: 'Access', roles: ['authority'], Page: Accounts },
  { path: 'doctor', title: 'Doctor', group: 'This machine', roles: everywhere, Page: Doctor },
  { path: 'audit', title: 'Audit', group: 'This machine', roles: everywhere, Page: Audit },
  { path: 'settings', title: 'Settings', group: 'This machine', roles: everywhere, Page: Settings },
];
