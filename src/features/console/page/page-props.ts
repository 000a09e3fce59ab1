import type { OverviewObject } from '../wire/console.ts';
import type { Route } from './router.ts';
import type { Loaded } from './use-data.ts';

/** What each page gets: its address, and the overview that the frame reads every two seconds. */
export type PageProps = { readonly route: Route; readonly overview: Loaded<OverviewObject> };
