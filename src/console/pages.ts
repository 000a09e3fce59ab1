import type { ComponentType } from 'preact';
import type { OverviewObject } from '../wire/console.ts';
import { Audit } from './pages/audit.tsx';
import { Doctor } from './pages/doctor.tsx';
import { Outbox } from './pages/outbox.tsx';
import { Overview } from './pages/overview.tsx';
import { Settings } from './pages/settings.tsx';
import type { PageProps } from './page-props.ts';

export type PageEntry = {
  /** The first part of the path. */
  readonly path: string;
  readonly title: string;
  /** The heading over its link; '': none. */
  readonly group: '' | 'Selling' | 'This machine';
  readonly roles: readonly OverviewObject['role'][];
  readonly Page: ComponentType<PageProps>;
  /** How many things on the page need a person. */
  readonly needs?: (overview: OverviewObject) => number;
};

function undecided({ outbox }: OverviewObject): number {
  return outbox === null ? 0 : outbox.held + outbox.conflicted + outbox.dead;
}

const everywhere = ['authority', 'agent', 'holder'] as const;

/** The pages in the order of the menu. */
export const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', group: '', roles: everywhere, Page: Overview },
  { path: 'outbox', title: 'Outbox', group: '', roles: ['agent'], Page: Outbox, needs: undecided },
  { path: 'doctor', title: 'Doctor', group: 'This machine', roles: everywhere, Page: Doctor },
  { path: 'audit', title: 'Audit', group: 'This machine', roles: everywhere, Page: Audit },
  { path: 'settings', title: 'Settings', group: 'This machine', roles: everywhere, Page: Settings },
];
