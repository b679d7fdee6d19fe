"""Options of fairseq that say how a model was trained, or what only other networks have.

Of the parsers of versions 0.7, 0.9 and 0.12 for the task of translation: whatever is in none of them is a fault (see
`fairseq`).
"""

_WORDS = """
    activation_dropout adadelta_eps adadelta_rho adafactor_eps adam_betas adam_eps adamax_betas adamax_eps
    adaptive_softmax_dropout adaptive_softmax_factor aim_repo aim_run_hash alignment_heads alignment_lambda
    alignment_layer all_gather_list_size amp amp_batch_retries amp_init_scale amp_scale_window anneal_eps
    attention_dropout average_sync azureml_logging base_shuffle base_sublayers batch_size batch_size_valid beam
    best_checkpoint_metric beta1 bf16 block_lr block_momentum broadcast_buffers bucket_cap_mb buffer_size
    checkpoint_activations checkpoint_shard_count checkpoint_suffix clip_norm clip_threshold combine_val
    combine_valid_subsets constraints context_window continue_once cpu cpu_offload criterion ctc_weight curriculum data
    data_buffer_size dataset_impl ddp_backend ddp_comm_hook decay_rate decay_steps decoder_embed_path decoder_layerdrop
    decoder_xformers_att_config device_id disable_validation distributed_backend distributed_init_method
    distributed_no_spawn distributed_num_procs distributed_port distributed_rank distributed_world_size
    diverse_beam_groups diverse_beam_strength diversity_rate dropout ema_decay ema_fp32 ema_seed_model ema_start_update
    ema_update_freq empty_cache_freq encoder_embed_path encoder_layerdrop encoder_xformers_att_config end_learning_rate
    eos eos_prob_threshold epoch2lr eval_bleu eval_bleu_args eval_bleu_detok eval_bleu_detok_args
    eval_bleu_print_samples eval_bleu_remove_bpe eval_tokenized_bleu export fast_stat_sync final_lr_scale
    find_unused_parameters finetune_from_model fix_batches_to_gpus fixed_validation_seed force_anneal fp16
    fp16_adam_stats fp16_init_scale fp16_no_flatten_grads fp16_scale_tolerance fp16_scale_window fp32_reduce_scatter
    full_context_alignment gen_subset global_sync_iter gradient_as_bucket_view grouped_shuffling heartbeat_timeout
    hold_steps ignore_prefix_size ignore_unused_valid_subsets init_lr_scale input keep_best_checkpoints
    keep_interval_updates keep_interval_updates_pattern keep_last_epochs label_smoothing lamb_betas lamb_eps lazy_load
    learning_rate left_pad_source left_pad_target lenpen lm_path lm_weight load_alignments
    load_checkpoint_on_all_dp_ranks local_rank localsgd_frequency log_file log_format log_interval lr lr_decay
    lr_patience lr_period_updates lr_scheduler lr_shrink lr_threshold match_source_len max_epoch max_len_a max_len_b
    max_lr max_positions max_sentences max_sentences_valid max_tokens max_tokens_valid max_update max_valid_steps
    maximize_best_checkpoint_metric memory_efficient_bf16 memory_efficient_fp16 min_len min_loss_scale min_lr
    min_params_to_wrap model_overrides model_parallel_size momentum moses_source_lang moses_target_lang nbest
    no_beamable_mm no_bias_correction no_early_stop no_epoch_checkpoints no_last_checkpoints no_progress_bar
    no_repeat_ngram_size no_reshard_after_forward no_save no_save_optimizer_state no_seed_provided
    not_fsdp_flatten_parameters nprocs_per_node num_batch_buckets num_shards num_workers nval offload_activations
    on_cpu_convert_precision optimizer optimizer_overrides output_word_probs output_word_stats pad patience phase_ratio
    pipeline_balance pipeline_checkpoint pipeline_chunks pipeline_decoder_balance pipeline_decoder_devices
    pipeline_devices pipeline_encoder_balance pipeline_encoder_devices pipeline_model_parallel plasma_path post_process
    power prefix_size print_alignment print_step profile quant_noise_pq_block_size quant_noise_scalar
    quantization_config_path quiet raw_text relative_step relu_dropout remove_bpe replace_unk report_accuracy
    required_batch_size_multiple required_seq_len_multiple reset_dataloader reset_logging reset_lr_scheduler
    reset_meters reset_optimizer restore_file results_path retain_dropout retain_dropout_modules retain_iter_history
    sacrebleu sacrebleu_char_level sacrebleu_lowercase sacrebleu_tokenizer sampling sampling_topk sampling_topp
    save_async save_dir save_interval save_interval_updates scale_parameter score_reference scoring seed sentence_avg
    sentencepiece_alpha sentencepiece_enable_sampling shard_id shrink_min skip_invalid_size_inputs_valid_test
    skip_remainder_batch slowmo_base_algorithm slowmo_momentum softmax_batch stop_min_lr stop_time_hours store_ema
    suppress_crashes t_mult tbmf_wrapper temperature tensorboard_logdir threshold_loss_scale tie_adaptive_proj
    tie_adaptive_weights total_num_update tpu train_subset truncate_source unk unkpen unnormalized update2lr
    update_epoch_batch_itr update_freq update_ordered_indices_seed upsample_primary use_bmuf use_nbm use_old_adam
    use_plasma_view use_sharded_state user_dir valid_subset validate_after_updates validate_interval
    validate_interval_updates wandb_project warmup_init warmup_init_lr warmup_iterations warmup_steps warmup_updates
    weight_decay write_checkpoints_asynchronously zero_sharding
"""
HARMLESS = frozenset(_WORDS.split())
