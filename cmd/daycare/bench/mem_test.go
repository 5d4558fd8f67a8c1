package bench
import ("testing";"context";"os";"runtime";"runtime/pprof";"sync";"time")
func TestMem(t *testing.T){
 ctx:=context.Background()
 w,err:=NewWorld(t.TempDir(), instant{"ok"}, "followup"); if err!=nil{t.Fatal(err)}
 w.Run()
 ids,err:=w.Agents(ctx,1000); if err!=nil{t.Fatal(err)}
 t.Log("created", rss()>>20)
 at:=time.Now()
 var wg sync.WaitGroup
 for _,id:=range ids{ wg.Go(func(){ for range 20 { w.Ask(ctx,id,"hello") } }) }
 wg.Wait()
 t.Log("done", rss()>>20, 20000/time.Since(at).Seconds())
 runtime.GC()
 var m runtime.MemStats; runtime.ReadMemStats(&m)
 t.Log("heap",m.HeapInuse>>20,"stack",m.StackInuse>>20,"sys",m.Sys>>20,"idle",m.HeapIdle>>20,"rel",m.HeapReleased>>20, "gor", runtime.NumGoroutine())
 f,_:=os.Create("/tmp/heap.prof"); pprof.WriteHeapProfile(f); f.Close()
 w.Close()
}
