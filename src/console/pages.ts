import type { ComponentType } from 'preact';
import type { OverviewObject } from '../wire/console.ts';
import { Overview } from './pages/overview.tsx';
import type { PageProps } from './page-props.ts';

export type PageEntry = {
  /** The first part of the path. */
  readonly path: string;
  readonly title: string;
  /** The heading over its link; '': none. */
  readonly group: '' | 'Selling' | 'This machine';
  readonly roles: readonly OverviewObject['role'][];
  readonly Page: ComponentType<PageProps>;
};

/** The pages in the order of the menu. */
export const pages: readonly PageEntry[] = [
  { path: '', title: 'Overview', group: '', roles: ['authority', 'agent', 'holder'], Page: Overview },
];
