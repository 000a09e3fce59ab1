import type { Status } from '../../../service/status.ts';

/** Something that needs a person. */
export type Attention = {
  /** A short, stable name of the problem. */
  code: string;
  level: 'warn' | 'fail';
  text: string;
  advice: string;
  /** A command line that helps; null: there is none. */
  command: string | null;
  /** The page of the console about it. */
  page: string | null;
};

/** What the first page of the console shows. Times are epoch ms. */
export type Overview = Status & {
  startedAt: number;
  /** The options that a command needs to reach this process. */
  options: readonly string[];
  /** Of all amounts, such as `EUR`; null: not known. */
  currency: string | null;
  /** When the oldest unfinished operation was recorded; null: there is none. */
  oldestAt: number | null;
  /** The products of an agent whose names it knows; null unless this is an agent. */
  products: readonly { productKey: string; name: string }[] | null;
  /** The most urgent first. */
  attention: readonly Attention[];
};
