import { createTestStore } from '../builders/store-builders.ts';
import { type AuthorityStore, engineOfProject } from './engine.ts';

/** An empty store on the engine of the test project. */
export async function openAuthorityStore(): Promise<AuthorityStore> {
  if (engineOfProject !== null) return await engineOfProject.open();
  const store = createTestStore();
  const { database, transaction } = store.writing;
  return {
    reader: store.reading.reader,
    async write(work) {
      database.exec('BEGIN');
      try {
        const value = await work(transaction);
        database.exec('COMMIT');
        return value;
      } catch (error) {
        database.exec('ROLLBACK');
        throw error;
      }
    },
    index: () => void transaction.licenses.indexForSearch(10_000),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
